-- Whether this role may delete what is remembered.
SELECT bool_and(has_table_privilege(c.oid, 'DELETE'))
  FROM pg_class AS c
 WHERE c.relnamespace = 'dbanon'::regnamespace
   AND c.relname IN ('history_figures', 'history_key', 'history_member', 'history_value')
