-- The persons of one table of a dataset, with the published class of each, and how many rows if that counts.
SELECT {person} AS person, pg_catalog.concat_ws(':', {part}, g.class, {times}) AS class
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN (SELECT group_id, dense_rank() OVER (ORDER BY {columns}) AS class
          FROM {groups}) AS g ON g.group_id = r.group_id
 GROUP BY {person}, g.class
