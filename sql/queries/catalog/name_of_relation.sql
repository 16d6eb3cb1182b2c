-- The schema and the name of a relation, given by OID.
SELECT n.nspname,
       c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = %(relation)s
