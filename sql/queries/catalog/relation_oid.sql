-- The relation of that schema and name, if there is one.
SELECT c.oid
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %s
   AND c.relname = %s
