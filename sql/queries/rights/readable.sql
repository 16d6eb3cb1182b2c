-- Whether the current role can read a relation and, to know how it was published, the ledger.
SELECT coalesce(bool_and(has_table_privilege(c.oid, 'SELECT')
                         AND has_schema_privilege(c.relnamespace, 'USAGE')), false)
       AND count(*) = 3
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon'
   AND c.relname IN ('release', 'taxonomy', 'taxonomy_node')
