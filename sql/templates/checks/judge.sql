-- Judge the classes by what each achieves, which the fragment of a model computes of its input.
WITH {input},
{arithmetic}
SELECT ({required})::{of_required},
       CASE WHEN count(e.class) > 0 THEN {worst} END::{of_achieved},
       count(e.class),
       CASE WHEN count(e.class) > 0
            THEN count(*) FILTER (WHERE {fails})
            ELSE 0 END,
       coalesce(sum(e.members), 0)::bigint,
       CASE WHEN count(e.class) = 0 THEN 'not checked'
            WHEN bool_or({fails}) THEN 'failed'
            ELSE 'passed' END
  FROM each_class AS e
