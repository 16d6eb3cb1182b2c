-- Which relations readers can write whose rules for INSERT, UPDATE or DELETE use what is private: a rule
-- reads with the rights of the owner of its relation, if that role has any there. Writing a view writes
-- what it is made of, with the rights of its owner, and asks the row-level policies of that. A cascade
-- of a foreign key runs rules, too.
--
-- needed: a relation that a view of the 'invoker' leads to, which its owner need have no right on.
WITH RECURSIVE part (class, oid, needed, way) AS (
    SELECT *
      FROM unnest(%(part_classes)s::oid[], %(part_oids)s::oid[], %(part_needed)s::oid[],
                  %(part_ways)s::text[])
),
ruled (oid, event, kind, needed) AS (
    SELECT w.ev_class, w.ev_type, 'rule', NULL::oid
      FROM pg_rewrite AS w
      JOIN pg_class AS c ON c.oid = w.ev_class
     WHERE w.ev_type <> '1'
       AND w.ev_enabled <> 'D'
       AND EXISTS (SELECT
                     FROM pg_depend AS d
                     JOIN part AS p ON d.refclassid = p.class AND d.refobjid = p.oid
                    WHERE d.classid = 'pg_rewrite'::regclass
                      AND d.objid = w.oid
                      AND (p.way <> 'policy'
                           OR c.oid = %(published)s
                           OR c.oid = ANY (%(relations)s::oid[]))
                      AND (p.class <> 'pg_class'::regclass
                           OR has_table_privilege(c.relowner, p.oid, %(uses)s)
                           OR has_any_column_privilege(c.relowner, p.oid, %(uses_columns)s))
                      AND (p.needed IS NULL
                           OR has_table_privilege(c.relowner, p.needed, %(uses)s)
                           OR has_any_column_privilege(c.relowner, p.needed, %(uses_columns)s)))
    UNION
    -- A view is private only if its owner is one of whom the policy is asked.
    SELECT w.ev_class, e.event, 'policy', NULL
      FROM part AS p
      JOIN pg_depend AS d ON d.refclassid = p.class AND d.refobjid = p.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
     CROSS JOIN unnest('{2,3,4}'::"char"[]) AS e (event)
     WHERE p.way = 'policy'
       AND w.ev_type = '1'
       AND w.ev_class = ANY (%(relations)s::oid[])
    UNION
    SELECT above.oid, above.event, r.kind, above.needed
      FROM ruled AS r
      JOIN (VALUES ('2', 'UPDATE'), ('3', 'INSERT'), ('4', 'DELETE')) AS e (event, privilege)
        ON e.event::"char" = r.event
     CROSS JOIN LATERAL (
           SELECT c.oid, CASE w.ev_type WHEN '1' THEN r.event ELSE w.ev_type END,
                  CASE WHEN o.is_invoker THEN coalesce(r.needed, r.oid) END
             FROM pg_depend AS d
             JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
             JOIN pg_class AS c ON c.oid = w.ev_class
            CROSS JOIN LATERAL (
                  SELECT w.ev_type = '1'
                     AND lower(coalesce(c.reloptions::text, ''))
                             ~ 'security_invoker=(true|on|yes|1)') AS o (is_invoker)
            WHERE d.refclassid = 'pg_class'::regclass
              AND d.refobjid = r.oid
              AND c.oid <> r.oid
              AND w.ev_enabled <> 'D'
              AND (o.is_invoker
                   OR has_table_privilege(c.relowner, coalesce(r.needed, r.oid), e.privilege)
                   OR e.privilege <> 'DELETE'
                  AND has_any_column_privilege(c.relowner, coalesce(r.needed, r.oid), e.privilege))
            UNION ALL
           SELECT k.confrelid, f.event, NULL
             FROM pg_constraint AS k
            CROSS JOIN LATERAL (
                  SELECT '4'::"char"
                   WHERE r.event = '4' AND k.confdeltype = 'c'
                      OR r.event = '2' AND k.confdeltype IN ('n', 'd')
                   UNION ALL
                  SELECT '2'
                   WHERE r.event = '2' AND k.confupdtype IN ('c', 'n', 'd')) AS f (event)
            WHERE k.contype = 'f'
              AND k.conrelid = r.oid
           ) AS above (oid, event, needed)
)
SELECT DISTINCT a.reader, a.name, r.kind, n.nspname::text, c.relname::text,
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
 WHERE r.needed IS NULL
   AND (has_table_privilege(a.role, c.oid, e.privilege)
        OR e.privilege <> 'DELETE' AND has_any_column_privilege(a.role, c.oid, e.privilege))
