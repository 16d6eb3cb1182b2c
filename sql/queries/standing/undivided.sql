-- The classes of which some are not to be shown any more, and of which the others are no valid class.
WITH rest AS (
    SELECT m.class, m.value_id
      FROM pg_temp.history_members AS m
     WHERE m.class IN (SELECT d.class FROM pg_temp.history_departed AS d)
       AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = m.person)
)
SELECT r.class
  FROM rest AS r
 GROUP BY r.class
HAVING count(*) < %(k)s
 UNION
SELECT r.class
  FROM rest AS r
  JOIN dbanon.history_value AS v ON v.value_id = r.value_id
 CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
 GROUP BY r.class, q.name, q.required
HAVING count(DISTINCT v.value -> q.name) < q.required
