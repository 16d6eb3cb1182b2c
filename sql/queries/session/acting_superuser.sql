-- The superuser behind this session, if there is one.
SELECT rolname
  FROM pg_roles
 WHERE rolsuper
   AND rolname IN (session_user, current_user)
 LIMIT 1
