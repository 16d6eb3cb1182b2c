-- Who can read one of some relations, or a view of one, by a role that it may take on as well, without
-- being its owner, and cannot read the source anyway. A view that asks for the rights of whoever reads
-- it lets nobody read who could not.
WITH RECURSIVE above (oid) AS (
    SELECT p.oid
      FROM unnest(%(relations)s::oid[]) AS p (oid)
     UNION
    SELECT w.ev_class
      FROM above AS a
      JOIN pg_depend AS d
        ON d.refclassid = 'pg_class'::regclass
       AND d.refobjid = a.oid
       AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite AS w ON w.oid = d.objid AND w.ev_type = '1'
),
entry AS MATERIALIZED (
    SELECT c.oid, c.relowner
      FROM above AS a
      JOIN pg_class AS c ON c.oid = a.oid
     WHERE NOT EXISTS (SELECT
                         FROM pg_options_to_table(c.reloptions) AS o
                        WHERE o.option_name = 'security_invoker'
                          AND o.option_value::boolean)
)
SELECT r.rolname::text
  FROM pg_roles AS r
 WHERE NOT r.rolsuper
   AND NOT has_any_column_privilege(r.oid, %(source)s::oid, 'SELECT')
   AND EXISTS (SELECT
                 FROM entry AS e
                WHERE NOT pg_has_role(r.oid, e.relowner, 'MEMBER')
                  AND EXISTS (SELECT
                                FROM pg_roles AS m
                               WHERE pg_has_role(r.oid, m.oid, 'MEMBER')
                                 AND has_any_column_privilege(m.oid, e.oid, 'SELECT')))
