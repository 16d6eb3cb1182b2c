-- The series of each remembered release of a table: the release that started it, 0 for the first one;
-- and its relation.
SELECT h.release_id, h.series, h.relation_schema, h.relation_name
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 ORDER BY h.release_id
