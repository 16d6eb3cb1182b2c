-- What readers get from the server itself, past all rights on tables: its files, its log of changes,
-- statistics of values, statements of others, and roles that they can give themselves. Functions of
-- files that everybody may call since they were made look for themselves who calls them.
WITH acting (reader, role, name) AS (
    SELECT *
      FROM unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
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
 UNION ALL
SELECT a.reader, a.name, 'statistics', n.nspname::text, c.relname::text,
       a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN acting AS a ON has_any_column_privilege(a.role, c.oid, 'SELECT')
 WHERE n.nspname = 'pg_catalog'
   AND c.relname IN ('pg_statistic', 'pg_statistic_ext_data')
