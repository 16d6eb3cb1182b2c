-- Which relations readers can write whose rules for INSERT, UPDATE or DELETE use what is private: a rule
-- reads with the rights of the owner of its relation. Writing a view writes what it is made of.
WITH RECURSIVE ruled (oid, event) AS (
    SELECT w.ev_class, w.ev_type
      FROM pg_rewrite AS w
     WHERE w.ev_type <> '1'
       AND w.ev_enabled <> 'D'
       AND EXISTS (SELECT
                     FROM pg_depend AS d
                     JOIN unnest(%(classes)s::oid[], %(oids)s::oid[]) AS p (class, oid)
                       ON d.refclassid = p.class AND d.refobjid = p.oid
                    WHERE d.classid = 'pg_rewrite'::regclass
                      AND d.objid = w.oid)
    UNION
    SELECT w.ev_class, r.event
      FROM ruled AS r
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
     WHERE w.ev_type = '1'
)
SELECT DISTINCT a.reader, a.name, 'rule', n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
       OR EXISTS (SELECT
                    FROM pg_attribute AS t
                   CROSS JOIN LATERAL aclexplode(t.attacl) AS x
                   WHERE t.attrelid = c.oid
                     AND x.grantee = a.role)
  FROM ruled AS r
  JOIN (VALUES ('2', 'UPDATE'), ('3', 'INSERT'), ('4', 'DELETE')) AS e (event, privilege)
    ON e.event::"char" = r.event
  JOIN pg_class AS c ON c.oid = r.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 WHERE has_table_privilege(a.role, c.oid, e.privilege)
    OR e.privilege <> 'DELETE' AND has_any_column_privilege(a.role, c.oid, e.privilege)
