-- Count the cells of fewer persons than k, and the persons of the smallest.
SELECT count(*), min(c.persons)
  FROM (SELECT count(*) AS persons
          FROM {cells} AS h
         GROUP BY h.cell
        HAVING count(*) < {k}) AS c
