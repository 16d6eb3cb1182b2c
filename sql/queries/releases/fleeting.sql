-- A table whose rows come and go by other ways than statements, and by which.
SELECT c.oid::regclass::text,
       CASE WHEN c.relpersistence <> 'p' THEN 'is not logged: a crash empties it'
            ELSE 'has row-level security: its policies hide rows' END
  FROM pg_class AS c
 WHERE c.oid = ANY (%s::oid[])
   AND (c.relpersistence <> 'p' OR c.relrowsecurity)
 ORDER BY c.oid
 LIMIT 1
