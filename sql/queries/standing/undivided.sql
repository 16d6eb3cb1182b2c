-- The classes of which some are not to be shown any more, and of which the others are no valid class.
WITH rest AS (
    SELECT b.classes[1] AS class, b.value_ids
      FROM pg_temp.history_before AS b
     WHERE b.classes[1] IN (SELECT d.class FROM pg_temp.history_departed AS d)
       AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = b.person)
)
SELECT r.class
  FROM rest AS r
 GROUP BY r.class
HAVING count(*) < %(k)s
 UNION
SELECT r.class
  FROM rest AS r
 CROSS JOIN LATERAL unnest(r.value_ids) AS u (value_id)
  JOIN dbanon.history_value AS v ON v.value_id = u.value_id
 CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
 GROUP BY r.class, q.name, q.required
HAVING count(DISTINCT v.value -> q.name) < q.required
