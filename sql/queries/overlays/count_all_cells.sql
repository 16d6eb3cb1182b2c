-- Count the persons of every cell, and those in cells of too few, where only those have a cell written
-- down whom the newest release may concern. All others were in one class, of the first release.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons
          FROM pg_temp.history_cells AS h
         GROUP BY h.cell
         UNION ALL
        SELECT count(*)
          FROM pg_temp.history_entries AS e
         WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
         GROUP BY e.shown) AS c
