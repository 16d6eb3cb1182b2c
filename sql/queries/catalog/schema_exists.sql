-- Whether a schema of that name exists.
SELECT 1
  FROM pg_namespace
 WHERE nspname = %s
