-- Count the cells of fewer persons than each release asks that ever showed them, of those that have fewer
-- than some release asks; and the most that one of these cells was promised, and the least that one has.
-- Who has no cell written down was in one class, of the first release.
WITH member AS MATERIALIZED (
    SELECT h.person, h.cell
      FROM pg_temp.history_cells AS h
     UNION ALL
    SELECT e.person, int8send(e.shown)
      FROM pg_temp.history_entries AS e
     WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
),
small AS MATERIALIZED (
    SELECT m.cell, count(*) AS persons
      FROM member AS m
     GROUP BY m.cell
    HAVING count(*) < %(most)s
),
stay AS (
    SELECT s.cell, s.persons, e.relation, e.release_id, e.class, e.until
      FROM small AS s
      JOIN member AS m ON m.cell = s.cell
      JOIN pg_temp.history_entries AS e ON e.person = m.person
     WHERE e.place = 1
),
promised AS (
    SELECT s.cell, s.persons, coalesce(min(a.k), %(most)s) AS k
      FROM stay AS s
      LEFT JOIN unnest(%(releases)s::bigint[], %(relations)s::bigint[], %(ks)s::integer[])
                AS a (release_id, relation, k)
        ON a.relation = s.relation
       AND a.release_id >= s.release_id
       AND (a.release_id < s.until OR s.until IS NULL)
       AND s.class <> 0
     GROUP BY s.cell, s.persons
)
SELECT count(*), max(p.k), min(p.persons)
  FROM promised AS p
 WHERE p.persons < p.k
