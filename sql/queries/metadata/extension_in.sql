-- The extension whose schema this is, if there is one; public belongs to none of those in it.
SELECT e.extname::text
  FROM pg_extension AS e
  JOIN pg_namespace AS n ON n.oid = e.extnamespace
 WHERE n.nspname = %s
   AND n.nspname <> 'public'
 ORDER BY e.extname
 LIMIT 1
