-- Whether the metadata schema is installed and readable, and the stamp it carries.
SELECT c.oid IS NOT NULL,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       obj_description(n.oid, 'pg_namespace')
  FROM pg_namespace AS n
  LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'alembic_version'
 WHERE n.nspname = 'dbanon'
