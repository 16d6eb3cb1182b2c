-- The classes that somebody has left: how many did, of how many, and whether those who did are a valid
-- class themselves: of one cell of all releases, and with enough values of every column.
WITH member AS (
    SELECT u.class, c.cell, u.value_id, s.person IS NULL AS is_gone
      FROM pg_temp.history_before AS b
      JOIN pg_temp.history_cells AS c ON c.person = b.person
      LEFT JOIN pg_temp.history_standing AS s ON s.person = b.person
     CROSS JOIN LATERAL unnest(b.classes, b.value_ids) AS u (class, value_id)
),
varied AS (
    SELECT g.class, bool_and(g.different >= g.required) AS is_diverse
      FROM (SELECT m.class, q.name, q.required, count(DISTINCT v.value -> q.name) AS different
              FROM member AS m
              JOIN dbanon.history_value AS v ON v.value_id = m.value_id
             CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
             WHERE m.is_gone
             GROUP BY m.class, q.name, q.required) AS g
     GROUP BY g.class
)
SELECT m.class, count(*) FILTER (WHERE m.is_gone), count(*),
       count(*) FILTER (WHERE m.is_gone) >= %(k)s
           AND count(DISTINCT m.cell) = 1
           AND coalesce(bool_and(v.is_diverse), cardinality(%(columns)s::text[]) = 0)
  FROM member AS m
  LEFT JOIN varied AS v ON v.class = m.class
 GROUP BY m.class
HAVING bool_or(m.is_gone)
