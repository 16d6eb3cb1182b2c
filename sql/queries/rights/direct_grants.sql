-- What roles were given themselves on a relation, NULL, and on some schemas, and by whom.
SELECT coalesce(r.rolname::text, 'public'), g.schema, g.privilege, w.rolname::text
  FROM (SELECT NULL::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = %(published)s
         UNION
        SELECT NULL::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_attribute AS c
         CROSS JOIN LATERAL aclexplode(c.attacl) AS a
         WHERE c.attrelid = %(published)s
         UNION
        SELECT n.nspname::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_namespace AS n
         CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
         WHERE n.nspname = ANY (%(schemas)s)
       ) AS g (schema, grantee, privilege, grantor)
  LEFT JOIN pg_roles AS r ON r.oid = g.grantee
  JOIN pg_roles AS w ON w.oid = g.grantor
 WHERE coalesce(r.rolname::text, 'public') = ANY (%(roles)s)
 ORDER BY 1, 2, 3, 4
