-- The storage options of a view, among them security_barrier.
SELECT c.reloptions
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %s
   AND c.relname = %s
   AND c.relkind = 'v'
