-- Whether the ledger has its tables, and whether the current role can enter a check into it, on a server
-- that takes any writes.
SELECT count(*) = 2,
       NOT pg_is_in_recovery()
           AND current_setting('transaction_read_only') = 'off'
           AND coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE')
                                 AND has_table_privilege(c.oid, CASE c.relname
                                                                WHEN 'release' THEN 'SELECT'
                                                                ELSE 'INSERT' END)), false)
  FROM pg_namespace AS n
  JOIN pg_class AS c ON c.relnamespace = n.oid
 WHERE n.nspname = 'dbanon'
   AND c.relname IN ('release', 'verification')
   AND c.relkind = 'r'
