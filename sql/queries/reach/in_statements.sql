-- Who can look at a live view between two rows of a statement that writes its source: who writes the
-- source, a view of it or a table whose foreign keys write it, and who can have a trigger in between.
WITH scene (oid, kind, rights, of_columns) AS (
    SELECT s.oid, w.kind, w.rights, w.of_columns
      FROM unnest(%(scene)s::oid[], %(written)s::boolean[]) AS s (oid, written)
      JOIN (VALUES ('between', 'UPDATE, DELETE', 'UPDATE'),
                   ('references', 'REFERENCES', 'REFERENCES'),
                   ('near trigger', 'TRIGGER', NULL)) AS w (kind, rights, of_columns)
        ON s.written OR w.kind = 'near trigger'
     UNION ALL
    SELECT p.oid, 'between', 'INSERT, UPDATE, DELETE, TRUNCATE', 'INSERT, UPDATE'
      FROM unnest(%(classes)s::oid[], %(oids)s::oid[], %(origins)s::text[])
           AS p (class, oid, origin)
     WHERE p.class = 'pg_class'::regclass
       AND p.origin = 'source'
)
SELECT DISTINCT a.reader, a.name,
       CASE WHEN s.kind = 'near trigger' AND c.oid = ANY (%(family)s::oid[]) THEN 'trigger'
            ELSE s.kind END,
       n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
       OR EXISTS (SELECT
                    FROM pg_attribute AS t
                   CROSS JOIN LATERAL aclexplode(t.attacl) AS x
                   WHERE t.attrelid = c.oid
                     AND x.grantee = a.role)
  FROM scene AS s
  JOIN pg_class AS c ON c.oid = s.oid AND c.relkind IN ('r', 'p', 'v', 'f')
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 CROSS JOIN unnest(%(all_readers)s::text[], %(all_roles)s::oid[], %(all_names)s::text[])
       AS a (reader, role, name)
 WHERE (has_table_privilege(a.role, c.oid, s.rights)
        OR s.of_columns IS NOT NULL AND has_any_column_privilege(a.role, c.oid, s.of_columns))
   AND (c.relkind <> 'v'
        OR NOT lower(coalesce(c.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)')
