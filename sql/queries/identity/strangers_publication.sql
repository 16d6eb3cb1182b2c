-- What of a published view and of its schema a stranger owns: neither who owns the private tables of
-- its release, nor this role, the owner of the database or a superuser.
WITH owned (name, owner) AS (
    SELECT format('schema %%I', n.nspname), n.nspowner
      FROM pg_namespace AS n
     WHERE n.nspname = %(schema)s
    UNION ALL
    SELECT format('%%I.%%I', n.nspname, c.relname), c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = %(view)s
)
SELECT o.name, r.rolname::text
  FROM owned AS o
  JOIN pg_roles AS r ON r.oid = o.owner
 WHERE NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user, 'pg_database_owner')
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
   AND r.oid NOT IN (SELECT c.relowner
                       FROM pg_class AS c
                       JOIN pg_namespace AS n ON n.oid = c.relnamespace
                      WHERE n.nspname = 'dbanon_data'
                        AND c.relname ~ %(tables)s)
 ORDER BY 1
