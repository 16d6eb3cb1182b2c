-- The current role: its name, whether it is a superuser, whether it may create what publishing needs:
-- schemas here, or relations in each of the schemas that are named.
SELECT r.rolname::text,
       r.rolsuper,
       has_database_privilege(r.oid, current_database(), 'CREATE')
           OR NOT EXISTS (SELECT
                            FROM unnest(%(schemas)s::text[]) AS s (name)
                            LEFT JOIN pg_namespace AS n ON n.nspname = s.name
                           WHERE n.oid IS NULL
                              OR NOT has_schema_privilege(r.oid, n.oid, 'USAGE')
                              OR NOT has_schema_privilege(r.oid, n.oid, 'CREATE'))
  FROM pg_roles AS r
 WHERE r.rolname = current_user
