-- The parts of the classes that somebody has left, each of one cell of all releases: how many left it, of
-- how many, whether those who did, and those who did not, are a valid class themselves, and whether
-- somebody has been gone for too long.
CREATE TEMPORARY TABLE history_touched ON COMMIT DROP AS
WITH member AS (
    SELECT m.class, c.cell, m.value_id, m.is_gone, coalesce(g.is_overdue, false) AS is_overdue
      FROM pg_temp.history_members AS m
      JOIN pg_temp.history_cells AS c ON c.person = m.person
      LEFT JOIN pg_temp.history_missed AS g ON g.person = m.person
),
varied AS (
    SELECT g.class, g.cell, g.is_gone, bool_and(g.different >= g.required) AS is_diverse
      FROM (SELECT m.class, m.cell, m.is_gone, q.name, q.required,
                   count(DISTINCT v.value -> q.name) AS different
              FROM member AS m
              JOIN dbanon.history_value AS v ON v.value_id = m.value_id
             CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
             GROUP BY m.class, m.cell, m.is_gone, q.name, q.required) AS g
     GROUP BY g.class, g.cell, g.is_gone
),
counted AS (
    SELECT m.class, m.cell, m.is_gone, count(*) AS persons, bool_or(m.is_overdue) AS is_overdue,
           count(*) >= %(k)s AND coalesce(bool_and(v.is_diverse), true) AS is_safe
      FROM member AS m
      LEFT JOIN varied AS v ON (v.class, v.cell, v.is_gone) = (m.class, m.cell, m.is_gone)
     GROUP BY m.class, m.cell, m.is_gone
)
SELECT row_number() OVER (ORDER BY c.class, c.cell) AS part, c.class, c.cell,
       coalesce(sum(c.persons) FILTER (WHERE c.is_gone), 0)::bigint AS gone,
       sum(c.persons)::bigint AS persons,
       coalesce(bool_or(c.is_safe) FILTER (WHERE c.is_gone), false) AS gone_are_safe,
       coalesce(bool_or(c.is_safe) FILTER (WHERE NOT c.is_gone), false) AS others_are_safe,
       bool_or(c.is_overdue) AS is_overdue
  FROM counted AS c
 GROUP BY c.class, c.cell
