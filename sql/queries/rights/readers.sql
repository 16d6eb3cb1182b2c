-- Who can read one of some relations, by a role that it may take on as well, without being its owner,
-- and cannot read the source anyway.
SELECT r.rolname::text
  FROM pg_roles AS r
 WHERE NOT r.rolsuper
   AND NOT has_any_column_privilege(r.oid, %(source)s::oid, 'SELECT')
   AND EXISTS (SELECT
                 FROM unnest(%(relations)s::oid[]) AS p (oid)
                 JOIN pg_class AS c ON c.oid = p.oid
                WHERE NOT pg_has_role(r.oid, c.relowner, 'MEMBER')
                  AND EXISTS (SELECT
                                FROM pg_roles AS m
                               WHERE pg_has_role(r.oid, m.oid, 'MEMBER')
                                 AND has_any_column_privilege(m.oid, c.oid, 'SELECT')))
