-- The series of each remembered release of a table: the release that started it, 0 for the first one.
SELECT h.release_id, h.series
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
