-- The grants on a relation and on its columns, less those of the owner.
WITH target AS (
    SELECT c.oid, c.relacl, c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = %s
       AND c.relname = %s
),
granted (grantee, privilege, grantable, column_name) AS (
    SELECT a.grantee, a.privilege_type, a.is_grantable, NULL::text
      FROM target AS t
     CROSS JOIN LATERAL aclexplode(t.relacl) AS a
    UNION ALL
    SELECT a.grantee, a.privilege_type, a.is_grantable, c.attname::text
      FROM target AS t
      JOIN pg_attribute AS c ON c.attrelid = t.oid
     CROSS JOIN LATERAL aclexplode(c.attacl) AS a
)
SELECT coalesce(r.rolname::text, ''), g.privilege, g.grantable, g.column_name
  FROM granted AS g
 CROSS JOIN target AS t
  LEFT JOIN pg_roles AS r ON r.oid = g.grantee
 WHERE g.grantee <> t.relowner
 ORDER BY 1, 2, 4
