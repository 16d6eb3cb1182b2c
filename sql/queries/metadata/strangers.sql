-- What a stranger owns of the metadata, the functions of its triggers included: who can replace a
-- check function can let it pass anything, and run code as whoever publishes.
WITH owned (name, owner) AS (
    SELECT format('schema %I', n.nspname), n.nspowner
      FROM pg_namespace AS n
     WHERE n.nspname IN ('dbanon', 'dbanon_data')
    UNION ALL
    SELECT format('%I.%I', n.nspname, p.proname), p.proowner
      FROM pg_proc AS p
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE n.nspname = 'dbanon'
    UNION ALL
    SELECT format('%I.%I', n.nspname, c.relname), c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
    UNION ALL
    SELECT format('trigger %I of %I.%I', t.tgname, n.nspname, c.relname), p.proowner
      FROM pg_trigger AS t
      JOIN pg_proc AS p ON p.oid = t.tgfoid
      JOIN pg_class AS c ON c.oid = t.tgrelid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
)
SELECT o.name, r.rolname
  FROM owned AS o
  JOIN pg_roles AS r ON r.oid = o.owner
 WHERE NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user)
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
 ORDER BY o.name LIKE 'schema %' DESC, o.name
 LIMIT 1
