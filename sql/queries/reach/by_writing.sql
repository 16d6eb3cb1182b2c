-- What readers can write of the metadata and of releases, and where a trigger or a foreign key of
-- theirs would look into what is private.
WITH ways (kind, rights, of_columns) AS (
    VALUES ('writing', 'INSERT, UPDATE, DELETE, TRUNCATE', 'INSERT, UPDATE'),
           ('trigger', 'TRIGGER', NULL),
           ('references', 'REFERENCES', 'REFERENCES')
     UNION ALL
    SELECT 'maintenance', 'MAINTAIN', NULL
     WHERE current_setting('server_version_num')::integer >= 170000
)
SELECT a.reader, a.name, w.kind, n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
       OR EXISTS (SELECT
                    FROM pg_attribute AS t
                   CROSS JOIN LATERAL aclexplode(t.attacl) AS x
                   WHERE t.attrelid = c.oid
                     AND x.grantee = a.role)
  FROM unnest(%(classes)s::oid[], %(oids)s::oid[], %(origins)s::text[]) AS p (class, oid, origin)
  JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN ways AS w
    ON CASE w.kind WHEN 'writing' THEN p.origin = 'metadata' AND c.relkind <> 't'
                   WHEN 'maintenance' THEN p.origin = 'metadata' AND c.relkind IN ('r', 'p', 'm')
                   WHEN 'trigger' THEN c.relkind IN ('r', 'p', 'v', 'f')
                   ELSE c.relkind IN ('r', 'p') END
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 WHERE (has_table_privilege(a.role, c.oid, w.rights)
        OR w.of_columns IS NOT NULL AND has_any_column_privilege(a.role, c.oid, w.of_columns))
   AND (c.relkind <> 'v'
        OR NOT lower(coalesce(c.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)')
 UNION ALL
SELECT a.reader, a.name, 'schema', n.nspname::text, '',
       n.nspowner = a.role
       OR EXISTS (SELECT FROM aclexplode(n.nspacl) AS x WHERE x.grantee = a.role)
  FROM pg_namespace AS n
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 WHERE n.nspname IN ('dbanon', 'dbanon_data')
   AND has_schema_privilege(a.role, n.oid, 'CREATE')
