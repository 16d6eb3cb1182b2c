-- Which private tables and views readers can read, and which functions read them for their callers.
SELECT a.reader, a.name,
       CASE c.relkind WHEN 'v' THEN 'view'
                      WHEN 'm' THEN 'materialized view'
                      WHEN 'f' THEN 'foreign table'
                      WHEN 't' THEN 'TOAST table'
                      ELSE 'table' END,
       n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
       OR EXISTS (SELECT
                    FROM pg_attribute AS t
                   CROSS JOIN LATERAL aclexplode(t.attacl) AS x
                   WHERE t.attrelid = c.oid
                     AND x.grantee = a.role)
  FROM unnest(%(classes)s::oid[], %(oids)s::oid[]) AS p (class, oid)
  JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.oid AND c.relkind <> 'S'
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 WHERE has_any_column_privilege(a.role, c.oid, 'SELECT')
   AND (c.relkind <> 'v'
        OR NOT lower(coalesce(c.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)')
 UNION ALL
SELECT a.reader, a.name, 'function', n.nspname::text, f.proname::text,
       f.proowner = a.role
       OR EXISTS (SELECT FROM aclexplode(f.proacl) AS x WHERE x.grantee = a.role)
  FROM unnest(%(classes)s::oid[], %(oids)s::oid[]) AS p (class, oid)
  JOIN pg_proc AS f ON p.class = 'pg_proc'::regclass AND f.oid = p.oid
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 WHERE (f.prosecdef
        OR EXISTS (SELECT
                     FROM pg_aggregate AS g
                     JOIN pg_proc AS s
                       ON s.prosecdef
                      AND s.oid = ANY (%(functions)s::oid[])
                      AND s.oid IN (g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn,
                                    g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn,
                                    g.aggmfinalfn)
                    WHERE g.aggfnoid = f.oid))
   AND has_function_privilege(a.role, f.oid, 'EXECUTE')
