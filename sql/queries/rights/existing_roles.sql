-- Those of the names that are roles of this server.
SELECT rolname
  FROM pg_roles
 WHERE rolname = ANY (%s)
