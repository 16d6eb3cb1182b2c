-- The current role: its name, whether it is a superuser, whether it may create schemas here.
SELECT rolname::text,
       rolsuper,
       has_database_privilege(oid, current_database(), 'CREATE')
  FROM pg_roles
 WHERE rolname = current_user
