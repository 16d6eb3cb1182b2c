-- Who was given what publishing takes, as far as that is left when tables were made anew.
SELECT r.rolname
  FROM pg_roles AS r
 CROSS JOIN pg_namespace AS m
 CROSS JOIN pg_namespace AS d
  JOIN pg_class AS c
    ON c.relnamespace = m.oid
   AND c.relname = 'release'
 WHERE m.nspname = 'dbanon'
   AND d.nspname = 'dbanon_data'
   AND r.oid <> c.relowner
   AND EXISTS (SELECT
                 FROM aclexplode(m.nspacl) AS a
                WHERE a.grantee = r.oid
                  AND a.privilege_type = 'USAGE'
                  AND a.is_grantable)
   AND EXISTS (SELECT
                 FROM aclexplode(d.nspacl) AS a
                WHERE a.grantee = r.oid
                  AND a.privilege_type = 'CREATE')
   AND (c.relname = ANY (%(made)s::text[])
        OR EXISTS (SELECT
                     FROM aclexplode(c.relacl) AS a
                    WHERE a.grantee = r.oid
                      AND a.privilege_type = 'INSERT'))
 ORDER BY r.rolname
