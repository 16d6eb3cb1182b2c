-- Count the persons of every cell, and those in cells of too few.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons FROM pg_temp.history_cells AS h GROUP BY h.cell) AS c
