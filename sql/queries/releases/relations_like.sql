-- The relations outside of the data of releases whose comment is like that.
SELECT n.nspname::text, c.relname::text
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r'
   AND n.nspname <> 'dbanon_data'
   AND obj_description(c.oid, 'pg_class') LIKE %(comment)s
 ORDER BY 1, 2
