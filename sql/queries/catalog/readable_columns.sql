-- Those of some columns of a relation that the current role may read.
SELECT a.attname::text
  FROM pg_attribute AS a
 WHERE a.attrelid = %(relation)s
   AND a.attname = ANY (%(names)s)
   AND a.attnum > 0
   AND NOT a.attisdropped
   AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
