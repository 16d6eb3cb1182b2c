-- Relations anywhere in this database whose name differs only in case, or in the schema.
SELECT n.nspname, c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE lower(c.relname) = lower(%s)
   AND c.relkind IN ('r', 'p')
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'dbanon', 'dbanon_data')
 ORDER BY n.nspname, c.relname
 LIMIT 3
