-- Count the persons who are shown alike in all tables of a dataset.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons
          FROM {cells}
         GROUP BY cell) AS c
