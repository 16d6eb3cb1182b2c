-- Whether the current role can enter a check into the ledger, and this server takes any writes.
SELECT count(*) = 2
       AND NOT pg_is_in_recovery()
       AND current_setting('transaction_read_only') = 'off'
  FROM pg_namespace AS n
  JOIN pg_class AS c ON c.relnamespace = n.oid
 WHERE n.nspname = 'dbanon'
   AND has_schema_privilege(n.oid, 'USAGE')
   AND ((c.relname = 'release' AND has_table_privilege(c.oid, 'SELECT'))
        OR (c.relname = 'verification' AND has_table_privilege(c.oid, 'INSERT')))
