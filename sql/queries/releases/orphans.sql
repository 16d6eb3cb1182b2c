-- Tables of release data that no served release needs.
SELECT c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND c.relkind = 'r'
   AND c.relname <> ALL (%s::text[])
 ORDER BY c.relname
