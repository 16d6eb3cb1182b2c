-- Who may read a published relation and, as any role they may act as, also reads what is private.
--
-- A reader is a grantee of the relation, of one of its columns too, or whoever inherits or can take
-- on the role of one. Private are the source with its ancestors and partitions, the metadata and
-- the data of releases, and what the catalogs say is made of these: views, materialized views and
-- functions that run with their owner's rights. Other published relations are not.
WITH RECURSIVE published AS (
    SELECT c.oid, c.relacl, c.relowner
      FROM pg_class AS c
     WHERE c.oid = %(published)s
),
grantee (role) AS (
    SELECT a.grantee
      FROM published AS p
     CROSS JOIN LATERAL aclexplode(p.relacl) AS a
     WHERE a.grantee <> p.relowner
    UNION
    SELECT a.grantee
      FROM published AS p
      JOIN pg_attribute AS c ON c.attrelid = p.oid
     CROSS JOIN LATERAL aclexplode(c.attacl) AS a
     WHERE a.grantee <> p.relowner
),
-- Members of the owner may act as the owner anyway. Before PostgreSQL 16 there is no right to SET.
reader (role, name) AS (
    SELECT g.role, coalesce(r.rolname::text, 'PUBLIC')
      FROM grantee AS g
      LEFT JOIN pg_roles AS r ON r.oid = g.role
    UNION
    SELECT r.oid, r.rolname::text
      FROM published AS p
     CROSS JOIN grantee AS g
      JOIN pg_roles AS r
        ON pg_has_role(r.oid, g.role, 'USAGE')
        OR pg_has_role(r.oid, g.role,
                       CASE WHEN current_setting('server_version_num')::integer >= 160000
                            THEN 'SET' ELSE 'MEMBER' END)
     WHERE g.role <> 0
       AND NOT r.rolsuper
       AND NOT pg_has_role(r.oid, p.relowner, 'MEMBER')
),
acting (reader, role, name, replicates) AS (
    SELECT r.name, a.oid, a.rolname::text, a.rolreplication
      FROM reader AS r
      JOIN pg_roles AS a ON pg_has_role(r.role, a.oid, 'MEMBER')
     WHERE r.role <> 0
    UNION ALL
    SELECT r.name, 0, r.name, false
      FROM reader AS r
     WHERE r.role = 0
),
family (oid) AS (
    SELECT %(source)s::oid
    UNION
    SELECT CASE WHEN i.inhparent = f.oid THEN i.inhrelid ELSE i.inhparent END
      FROM family AS f
      JOIN pg_inherits AS i ON f.oid IN (i.inhparent, i.inhrelid)
),
served (oid) AS (
    SELECT p.oid
      FROM published AS p
    UNION
    SELECT c.oid
      FROM dbanon.release AS r
      JOIN pg_namespace AS n ON n.nspname = r.relation_schema
      JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = r.relation_name
     WHERE r.served
       AND EXISTS (SELECT
                     FROM pg_rewrite AS w
                     JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                     JOIN pg_class AS t
                       ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
                     JOIN pg_namespace AS s ON s.oid = t.relnamespace
                    WHERE w.ev_class = c.oid
                      AND s.nspname = 'dbanon_data'
                      AND t.relname IN (format('release_%%s', r.data_id),
                                        format('rows_%%s', r.data_id)))
),
private (class, oid) AS (
    SELECT 'pg_class'::regclass::oid, c.oid
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND (c.oid IN (SELECT f.oid FROM family AS f)
            OR n.nspname IN ('dbanon', 'dbanon_data'))
    UNION
    SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass::oid END,
           coalesce(w.ev_class, d.objid)
      FROM private AS m
      JOIN pg_depend AS d ON d.refclassid = m.class AND d.refobjid = m.oid
      LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
     WHERE (w.oid IS NOT NULL OR d.classid = 'pg_proc'::regclass)
       AND w.ev_class IS DISTINCT FROM m.oid
       AND coalesce(w.ev_class, 0::oid) NOT IN (SELECT s.oid FROM served AS s)
),
-- Of the roles by which a reader gets at something, the one that was given it itself is told.
found (reader, acting, kind, schema, name, rank, given) AS (
    SELECT a.reader, a.name,
           CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'table' END,
           n.nspname::text, c.relname::text,
           CASE WHEN c.oid IN (SELECT f.oid FROM family AS f) THEN 0 ELSE 1 END,
           c.relowner = a.role
           OR a.name = 'pg_read_all_data'
           OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
           OR EXISTS (SELECT
                        FROM pg_attribute AS t
                       CROSS JOIN LATERAL aclexplode(t.attacl) AS x
                       WHERE t.attrelid = c.oid
                         AND x.grantee = a.role)
      FROM private AS p
      JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.oid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN acting AS a
     WHERE has_any_column_privilege(a.role, c.oid, 'SELECT')
       AND (c.relkind <> 'v'
            OR NOT lower(coalesce(c.reloptions::text, ''))
                   ~ 'security_invoker=(true|on|yes|1)')
    UNION ALL
    SELECT a.reader, a.name, 'function', n.nspname::text, f.proname::text, 2,
           f.proowner = a.role
           OR EXISTS (SELECT FROM aclexplode(f.proacl) AS x WHERE x.grantee = a.role)
      FROM private AS p
      JOIN pg_proc AS f ON p.class = 'pg_proc'::regclass AND f.oid = p.oid
      JOIN pg_namespace AS n ON n.oid = f.pronamespace
     CROSS JOIN acting AS a
     WHERE f.prosecdef
       AND has_function_privilege(a.role, f.oid, 'EXECUTE')
    UNION ALL
    SELECT a.reader, a.name, 'default privileges', coalesce(n.nspname::text, 'any schema'), '', 3,
           a.role = e.grantee
      FROM published AS p
      JOIN pg_default_acl AS d ON d.defaclrole = p.relowner AND d.defaclobjtype = 'r'
      LEFT JOIN pg_namespace AS n ON n.oid = d.defaclnamespace
     CROSS JOIN LATERAL aclexplode(d.defaclacl) AS e
      JOIN acting AS a ON a.role = e.grantee OR e.grantee = 0
     WHERE e.privilege_type = 'SELECT'
       AND e.grantee <> p.relowner
       AND (d.defaclnamespace = 0 OR n.nspname IN ('dbanon', 'dbanon_data'))
    UNION ALL
    SELECT a.reader, a.name, 'replication', 'REPLICATION',
           coalesce((SELECT string_agg(DISTINCT t.pubname::text, ', ')
                       FROM pg_publication_tables AS t
                       JOIN pg_namespace AS n ON n.nspname = t.schemaname
                       JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
                       JOIN private AS p ON p.class = 'pg_class'::regclass AND p.oid = c.oid), ''),
           4,
           true
      FROM acting AS a
     WHERE a.replicates
    UNION ALL
    SELECT a.reader, a.name, 'files', a.name, '', 5, true
      FROM acting AS a
     WHERE a.name IN ('pg_read_server_files', 'pg_write_server_files',
                      'pg_execute_server_program')
)
SELECT DISTINCT ON (f.reader, f.rank, f.kind, f.schema, f.name)
       f.reader, f.acting, f.kind, f.schema, f.name
  FROM found AS f
 ORDER BY f.reader, f.rank, f.kind, f.schema, f.name, NOT f.given,
          f.acting <> f.reader, f.acting
