-- The distinct values of a column, and how many of the rows that are published have each.
SELECT count(*)::int8, v.value
  FROM (SELECT {value} AS value FROM {source} WHERE {selected}) AS v
 GROUP BY v.value
