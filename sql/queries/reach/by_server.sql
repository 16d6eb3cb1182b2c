-- What readers get from the server itself, past all rights on tables: its files, its log of changes,
-- statistics of values, statements of others, and roles that they can give themselves. PostgreSQL's own
-- functions of files that everybody may call since they were made look for themselves who calls them.
-- Copies under other names do not, but for that of pg_read_file.
WITH RECURSIVE acting (reader, role, name) AS (
    SELECT *
      FROM unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
),
-- is_open: whoever reads it, it shows all values. Views of the catalogs read them as their owner, and
-- pg_depend knows nothing of those. PostgreSQL's own views of them look who reads, but at that time: not
-- for a materialized view.
statistics (oid, is_open) AS (
    SELECT c.oid, c.relkind = 'r'
      FROM pg_class AS c
     WHERE c.relnamespace = 'pg_catalog'::regnamespace
       AND c.relname IN ('pg_statistic', 'pg_statistic_ext_data', 'pg_stats', 'pg_stats_ext',
                         'pg_stats_ext_exprs')
    UNION
    SELECT w.ev_class, true
      FROM pg_rewrite AS w
      JOIN pg_class AS c ON c.relnamespace = 'pg_catalog'::regnamespace
                        AND c.relname IN ('pg_statistic', 'pg_statistic_ext_data')
     WHERE w.ev_class >= 16384  -- none of PostgreSQL's own
       AND w.ev_type = '1'
       AND strpos(w.ev_action::text, format(':relid %%s ', c.oid)) > 0
    UNION
    SELECT c.oid, s.is_open OR c.relkind = 'm'
      FROM statistics AS s
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      JOIN pg_class AS c ON c.oid = w.ev_class
     WHERE c.oid >= 16384
)
SELECT a.reader, a.name, 'replication', 'REPLICATION',
       coalesce((SELECT string_agg(DISTINCT t.pubname::text, ', ')
                   FROM pg_publication_tables AS t
                   JOIN pg_namespace AS n ON n.nspname = t.schemaname
                   JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
                  WHERE c.oid = ANY (%(relations)s::oid[])), ''),
       true
  FROM acting AS a
  JOIN pg_roles AS r ON r.oid = a.role AND r.rolreplication
 UNION ALL
-- Since PostgreSQL 16 who may create roles has no right to give those of others.
SELECT a.reader, a.name, 'roles', 'CREATEROLE', '', true
  FROM acting AS a
  JOIN pg_roles AS r ON r.oid = a.role AND r.rolcreaterole
 WHERE current_setting('server_version_num')::integer < 160000
 UNION ALL
SELECT a.reader, a.name, 'files', a.name, '', true
  FROM acting AS a
 WHERE a.name IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
 UNION ALL
SELECT a.reader, a.name, 'statements', a.name, '', true
  FROM acting AS a
 WHERE a.name = 'pg_read_all_stats'
 UNION ALL
SELECT a.reader, a.name, 'file function', n.nspname::text, f.proname::text,
       EXISTS (SELECT FROM aclexplode(f.proacl) AS x WHERE x.grantee = a.role)
  FROM pg_proc AS f
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
  JOIN pg_language AS l ON l.oid = f.prolang AND l.lanname IN ('internal', 'c')
  JOIN acting AS a ON has_function_privilege(a.role, f.oid, 'EXECUTE')
 WHERE f.proacl IS NOT NULL
   AND (f.proname ~ '^pg_read_(binary_)?file$'
        OR f.proname ~ '^pg_file_(read|write|rename|unlink|sync)$'
        OR f.proname ~ '^pg_get_wal_(record|records|block)_info$'
        OR f.proname IN ('lo_import', 'lo_export', 'dblink_connect_u'))
    OR (f.proacl IS NOT NULL OR f.oid >= 16384)
   AND (f.prosrc ~ '^pg_read_(binary_file|file_.*|binary_file_.*)$'
        OR f.prosrc ~ '^pg_file_(write_v1_1|rename_v1_1|unlink_v1_1|sync)$'
        OR f.prosrc ~ '^be_lo_(import|import_with_oid|export)$')
 UNION ALL
SELECT a.reader, a.name, 'statistics', n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
  FROM statistics AS s
  JOIN pg_class AS c ON c.oid = s.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN acting AS a ON has_any_column_privilege(a.role, c.oid, 'SELECT')
 WHERE s.is_open
   AND (c.relkind <> 'v'
        OR NOT lower(coalesce(c.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)')
