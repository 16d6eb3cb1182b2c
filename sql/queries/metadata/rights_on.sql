-- What a role may do with tables that were made anew, and with their sequences, as statements.
WITH made AS (
    SELECT c.oid
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
       AND c.relname = ANY (%(made)s::text[])
)
SELECT format('GRANT %%s ON dbanon.%%I TO %%I', a.privilege_type, c.relname, r.rolname)
  FROM pg_class AS c
 CROSS JOIN LATERAL aclexplode(c.relacl) AS a
  JOIN pg_roles AS r ON r.oid = a.grantee
 WHERE r.rolname = %(role)s
   AND (c.oid IN (SELECT m.oid FROM made AS m)
        OR c.oid IN (SELECT d.objid
                       FROM pg_depend AS d
                       JOIN made AS m ON m.oid = d.refobjid
                      WHERE d.classid = 'pg_class'::regclass
                        AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')))
