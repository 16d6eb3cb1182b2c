-- How many rows each remembered release of a table changed.
SELECT h.release_id, sum(cardinality(m.persons))::bigint
  FROM dbanon.history AS h
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 GROUP BY h.release_id
