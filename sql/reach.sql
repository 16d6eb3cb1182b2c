-- What roles can reach of sources, metadata and private tables, by whatever way.

-- name: by_code
-- Functions and types of readers that run when others read or write private relations, or tables that write them: in
-- triggers, rules, constraints, defaults, indexes, policies and types. They see the rows, and a live view between two
-- of them.
WITH RECURSIVE reached (class, id) AS (
    SELECT 'pg_class'::regclass::oid, s.oid
      FROM unnest(%(scene)s::oid[] || %(relations)s::oid[]) AS s (oid)
    UNION
    SELECT part.class, part.id
      FROM reached AS r
     CROSS JOIN LATERAL (
           SELECT 'pg_trigger'::regclass, t.oid
             FROM pg_trigger AS t
            WHERE r.class = 'pg_class'::regclass
              AND t.tgrelid = r.id
            UNION ALL
           SELECT 'pg_rewrite'::regclass, w.oid
             FROM pg_rewrite AS w
            WHERE r.class = 'pg_class'::regclass
              AND w.ev_class = r.id
            UNION ALL
           SELECT 'pg_constraint'::regclass, k.oid
             FROM pg_constraint AS k
            WHERE r.class = 'pg_class'::regclass
              AND k.conrelid = r.id
            UNION ALL
           SELECT 'pg_attrdef'::regclass, d.oid
             FROM pg_attrdef AS d
            WHERE r.class = 'pg_class'::regclass
              AND d.adrelid = r.id
            UNION ALL
           SELECT 'pg_type'::regclass, a.atttypid
             FROM pg_attribute AS a
            WHERE r.class = 'pg_class'::regclass
              AND a.attrelid = r.id
              AND NOT a.attisdropped
            UNION ALL
           {parts}
            UNION ALL
           SELECT d.refclassid, d.refobjid
             FROM pg_depend AS d
            WHERE d.classid = r.class
              AND d.objid = r.id
              AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass,
                                   'pg_type'::regclass)
           ) AS part (class, id)
)
SELECT a.reader, a.name, 'code', n.nspname::text, p.proname::text, true
  FROM reached AS r
  JOIN pg_proc AS p ON r.class = 'pg_proc'::regclass AND p.oid = r.id
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  JOIN unnest(%(all_readers)s::text[], %(all_roles)s::oid[], %(all_names)s::text[])
       AS a (reader, role, name)
    ON a.role = p.proowner
 UNION ALL
-- The owner of a type can add casts and operators at any time.
SELECT a.reader, a.name, 'type', n.nspname::text, t.typname::text, true
  FROM reached AS r
  JOIN pg_type AS t ON r.class = 'pg_type'::regclass AND t.oid = r.id AND t.typtype <> 'p'
  JOIN pg_namespace AS n ON n.oid = t.typnamespace
  JOIN unnest(%(all_readers)s::text[], %(all_roles)s::oid[], %(all_names)s::text[])
       AS a (reader, role, name)
    ON a.role = t.typowner

-- name: by_defaults
-- Default privileges that would give readers rights on objects that dbanon creates.
--
-- PUBLIC has EXECUTE on functions by default, and dbanon revokes it where needed; PUBLIC may use all types.
SELECT a.reader, a.name, 'default privileges', coalesce(n.nspname::text, 'any schema'),
       format('%%s on new %%s', string_agg(DISTINCT e.privilege_type, ', '), w.objects),
       bool_or(a.role = e.grantee)
  FROM pg_default_acl AS d
  JOIN (VALUES ('r', 'tables'), ('S', 'sequences'), ('f', 'functions'), ('n', 'schemas'))
       AS w (type, objects)
    ON w.type = d.defaclobjtype
  LEFT JOIN pg_namespace AS n ON n.oid = d.defaclnamespace
 CROSS JOIN LATERAL aclexplode(d.defaclacl) AS e
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON a.role = e.grantee OR e.grantee = 0 AND w.type <> 'f'
 WHERE d.defaclrole IN (SELECT c.relowner
                          FROM pg_class AS c
                          JOIN pg_namespace AS s ON s.oid = c.relnamespace
                         WHERE c.oid = %(published)s
                            OR s.nspname IN ('dbanon', 'dbanon_data')
                         UNION
                        SELECT s.nspowner
                          FROM pg_namespace AS s
                         WHERE s.nspname IN ('dbanon', 'dbanon_data'))
   AND e.grantee <> d.defaclrole
   AND (w.type <> 'n' OR e.privilege_type = 'CREATE')
   AND (d.defaclnamespace = 0 OR n.nspname IN ('dbanon', 'dbanon_data'))
 GROUP BY a.reader, a.name, n.nspname, w.objects

-- name: by_foreign_servers
-- Foreign servers through which readers can log in to this database as another role.
--
-- An address may be one of many names of this machine, or of a proxy, so any server with this database's name counts.
-- Few roles can read the role of a user mapping; one that is not known to be the reader's own counts as that of
-- another role.
WITH server (oid, name) AS (
    SELECT s.oid, s.srvname::text
      FROM pg_foreign_server AS s
      JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
     CROSS JOIN LATERAL (
           SELECT max(t.option_value) FILTER (WHERE t.option_name = 'dbname'),
                  max(t.option_value) FILTER (WHERE t.option_name = 'port'),
                  lower(coalesce(max(t.option_value)
                                 FILTER (WHERE t.option_name IN ('hostaddr', 'host')), ''))
             FROM pg_options_to_table(s.srvoptions) AS t
           ) AS o (dbname, port, host)
     WHERE o.dbname = current_database()
        OR o.dbname IS NULL
       AND w.fdwname IN ('postgres_fdw', 'dblink_fdw')
       AND current_setting('port')
           = ANY (string_to_array(coalesce(o.port, current_setting('port')), ','))
       AND (o.host ~ '^(/|localhost|127[.]|0[.]0[.]0[.]0|::|$)'
            OR o.host = host(inet_server_addr()))
)
SELECT DISTINCT a.reader, a.name, 'foreign server', '', s.name, a.role = m.umuser
  FROM server AS s
  JOIN pg_user_mappings AS m ON m.srvid = s.oid
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON m.umuser IN (a.role, 0)
 WHERE has_server_privilege(a.role, s.oid, 'USAGE')
   AND (m.umoptions IS NULL OR NOT format('user=%%s', a.name) = ANY (m.umoptions))

-- name: by_reading
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

-- name: by_rules
-- Relations that readers can write, with rules for INSERT, UPDATE or DELETE that use private relations: a rule reads
-- with the rights of the owner of its relation. Writing a view writes its relations, with the rights of its owner,
-- under their row-level policies. A cascade of a foreign key also runs rules.
--
-- needed: a relation behind a view of the 'invoker', on which its owner needs no right.
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
    -- A view is private only if the policy applies to its owner.
    SELECT w.ev_class, e.event, 'policy', NULL
      FROM part AS p
      JOIN pg_depend AS d ON d.refclassid = p.class AND d.refobjid = p.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
     CROSS JOIN unnest(ARRAY['2', '3', '4']::"char"[]) AS e (event)
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

-- name: by_server
-- What readers get from the server regardless of rights on tables: files, the write-ahead log, statistics of values,
-- statements of others, and roles that they can grant themselves. PostgreSQL's own functions of files that PUBLIC may
-- call check the caller. Copies under other names do not, except that of pg_read_file.
WITH RECURSIVE acting (reader, role, name) AS (
    SELECT *
      FROM unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
),
-- is_open: it shows all values to every reader. Views of the catalogs read them as their owner, and are not in
-- pg_depend. PostgreSQL's own views check the reader, but when they are read: not for a materialized view.
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
-- Since PostgreSQL 16, roles with CREATEROLE cannot grant the roles of others.
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

-- name: by_writing
-- Metadata and releases that readers can write, and private relations that a trigger or a foreign key of theirs could
-- read.
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

-- name: in_statements
-- Roles that can read a live view between two rows of a statement that writes its source: writers of the source, of a
-- view of it or of a table whose foreign keys write it, and roles that can add a trigger in between.
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

-- name: private
-- The relations that a published relation hides: the source with its ancestors and partitions, and the relations
-- behind a view as the source; the metadata and the data of releases; and everything derived from these by the
-- catalogs, with its origin.
--
-- Derived are views, materialized views, foreign tables that lead back to them, and functions that use them or a type
-- of their rows. Other published relations are not private. Long values are in TOAST tables, which only the owner can
-- read without a grant.
--
-- A view or a function that uses a relation on which its owner has no right shows nothing of it, and any role can
-- create one. way: whose rights it uses, its 'owner' or its 'invoker'; then needed is a relation on which every user
-- of it needs a right. A table with a row-level 'policy' that uses private relations is not private: the policy reads
-- with the rights of the table's user, or of the owner of a view.
WITH RECURSIVE made_of (class, oid) AS (
    SELECT 'pg_class'::regclass::oid, %(source)s::oid
    UNION
    SELECT near.class, near.oid
      FROM made_of AS m
     CROSS JOIN LATERAL (
           SELECT m.class, CASE WHEN i.inhparent = m.oid THEN i.inhrelid ELSE i.inhparent END
             FROM pg_inherits AS i
            WHERE m.class = 'pg_class'::regclass
              AND m.oid IN (i.inhparent, i.inhrelid)
            UNION ALL
           SELECT d.refclassid, d.refobjid
             FROM pg_rewrite AS w
             JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            WHERE m.class = 'pg_class'::regclass
              AND w.ev_class = m.oid
              AND w.ev_type = '1'
              AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
              AND d.refobjid >= 16384  -- none of PostgreSQL's own
            UNION ALL
           SELECT d.refclassid, d.refobjid
             FROM pg_depend AS d
            WHERE m.class = 'pg_proc'::regclass
              AND d.classid = m.class
              AND d.objid = m.oid
              AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
              AND d.refobjid >= 16384
           ) AS near (class, oid)
),
family (oid) AS (
    SELECT m.oid
      FROM made_of AS m
     WHERE m.class = 'pg_class'::regclass
),
served (oid) AS (
    SELECT %(published)s::oid
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
-- Whatever the host: a copy of this database holds the same rows.
pointing (oid, schema, name) AS (
    SELECT f.ftrelid,
           coalesce(o.schema, n.nspname::text),
           coalesce(o.name, c.relname::text)
      FROM pg_foreign_table AS f
      JOIN pg_class AS c ON c.oid = f.ftrelid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
      JOIN pg_foreign_server AS s ON s.oid = f.ftserver
     CROSS JOIN LATERAL (
           SELECT max(t.option_value) FILTER (WHERE t.option_name = 'schema_name'),
                  max(t.option_value) FILTER (WHERE t.option_name = 'table_name')
             FROM pg_options_to_table(f.ftoptions) AS t
           ) AS o (schema, name)
     WHERE current_database() = coalesce((SELECT t.option_value
                                            FROM pg_options_to_table(s.srvoptions) AS t
                                           WHERE t.option_name = 'dbname'), current_database())
),
private (class, oid, origin, needed, way) AS (
    SELECT 'pg_class'::regclass::oid, f.oid, 'source', NULL::oid, 'owner'
      FROM family AS f
    UNION
    SELECT 'pg_class'::regclass::oid, c.oid, 'metadata', NULL, 'owner'
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
       AND n.nspname IN ('dbanon', 'dbanon_data')
       -- A relation that was set aside shows nothing, and others derived theirs from it when it was published.
       AND NOT (n.nspname = 'dbanon_data' AND c.relname ~ '^retired_[0-9]+$')
    UNION
    SELECT 'pg_proc'::regclass::oid, p.oid, 'metadata', NULL, 'owner'
      FROM pg_proc AS p
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE n.nspname = 'dbanon_data'
       -- Readers call the function that tests if a release may be read; it returns a boolean.
       AND p.proname !~ '^seen_[0-9]+$'
    UNION
    SELECT made.class, made.oid, m.origin,
           CASE WHEN made.way = 'owner' THEN NULL
                WHEN m.class = 'pg_class'::regclass THEN coalesce(m.needed, m.oid)
                ELSE m.needed END,
           made.way
      FROM private AS m
     CROSS JOIN LATERAL (
           -- A materialized view keeps what its owner could read once.
           SELECT 'pg_class'::regclass, c.oid, CASE WHEN NOT o.keeps THEN c.relowner END,
                  CASE WHEN w.ev_type = '1' AND o.is_invoker THEN 'invoker' ELSE 'owner' END
             FROM pg_depend AS d
             JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
             JOIN pg_class AS c ON c.oid = w.ev_class
            CROSS JOIN LATERAL (
                  SELECT c.relkind = 'm' AND c.relispopulated,
                         lower(coalesce(c.reloptions::text, ''))
                             ~ 'security_invoker=(true|on|yes|1)') AS o (keeps, is_invoker)
            WHERE d.refclassid = m.class
              AND d.refobjid = m.oid
              AND c.oid <> m.oid
              AND c.oid NOT IN (SELECT s.oid FROM served AS s)
            UNION ALL
           -- An aggregate calls its steps for every role that may call it.
           SELECT d.classid, f.oid, f.proowner,
                  CASE WHEN f.prosecdef
                            OR f.prokind = 'a'
                           AND m.class = d.classid
                           AND (SELECT s.prosecdef FROM pg_proc AS s WHERE s.oid = m.oid)
                       THEN 'owner'
                       ELSE 'invoker' END
             FROM pg_depend AS d
             JOIN pg_proc AS f ON f.oid = d.objid
            WHERE d.refclassid = m.class
              AND d.refobjid = m.oid
              AND d.classid = 'pg_proc'::regclass
            UNION ALL
           SELECT 'pg_class'::regclass, c.oid, NULL, 'policy'
             FROM pg_depend AS d
             JOIN pg_policy AS l ON d.classid = 'pg_policy'::regclass AND l.oid = d.objid
             JOIN pg_class AS c ON c.oid = l.polrelid AND c.relrowsecurity
            WHERE d.refclassid = m.class
              AND d.refobjid = m.oid
              AND c.oid <> m.oid
            UNION ALL
           SELECT 'pg_type'::regclass, t.oid, NULL, 'invoker'
             FROM pg_class AS c
             JOIN pg_type AS r ON r.oid = c.reltype
             JOIN pg_type AS t ON t.oid IN (r.oid, r.typarray)
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
            UNION ALL
           SELECT m.class, l.oid, NULL, 'owner'
             FROM pg_class AS c
             JOIN pg_class AS l ON l.oid = c.reltoastrelid
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
              AND l.relacl IS NOT NULL
            UNION ALL
           SELECT m.class, p.oid, NULL, 'owner'
             FROM pg_class AS c
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pointing AS p ON p.schema = n.nspname AND p.name = c.relname
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
           ) AS made (class, oid, owner, way)
     WHERE made.way <> 'owner'
        OR made.owner IS NULL
        OR CASE m.class
                WHEN 'pg_class'::regclass
                THEN has_table_privilege(made.owner, m.oid, %(uses)s)
                     OR has_any_column_privilege(made.owner, m.oid, %(uses_columns)s)
                WHEN 'pg_proc'::regclass
                THEN has_function_privilege(made.owner, m.oid, 'EXECUTE')
                ELSE true END
       AND (m.needed IS NULL
            OR has_table_privilege(made.owner, m.needed, %(uses)s)
            OR has_any_column_privilege(made.owner, m.needed, %(uses_columns)s))
       AND (m.way <> 'policy'
            OR EXISTS (SELECT
                         FROM pg_class AS g
                         JOIN pg_roles AS r ON r.oid = made.owner
                        WHERE g.oid = m.oid
                          AND NOT r.rolsuper
                          AND NOT r.rolbypassrls
                          AND (g.relforcerowsecurity
                               OR NOT pg_has_role(made.owner, g.relowner, 'USAGE'))))
)
SELECT p.class, p.oid, p.origin,
       p.class = 'pg_class'::regclass AND p.oid IN (SELECT f.oid FROM family AS f),
       p.class = 'pg_class'::regclass, p.needed, p.way
  FROM private AS p

-- name: readers
-- The readers of a published relation, or of one derived from it and from nothing private, and the roles that each
-- may use.
--
-- A reader is a grantee, also of a single column, or a role that inherits or can set the role of one, or that calls a
-- function that reads it with its owner's rights. Members of the owner may act as the owner anyway, and do not count.
-- If PUBLIC may read a live view, readers are also the roles that can log in and cannot read its source: these are
-- called strangers.
WITH RECURSIVE copy (oid, needed) AS (
    -- needed: the relation behind a view of its invoker, on which its readers have a right of their own. A view of a
    -- role without that right shows nothing of it, and any role can create one.
    SELECT %(published)s::oid, NULL::oid
    UNION
    SELECT v.oid, CASE WHEN o.is_invoker THEN coalesce(c.needed, c.oid) END
      FROM copy AS c
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      JOIN pg_class AS v ON v.oid = w.ev_class
     CROSS JOIN LATERAL (
           SELECT lower(coalesce(v.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)'
           ) AS o (is_invoker)
     WHERE w.ev_type = '1'
       AND v.oid <> ALL (%(relations)s::oid[])
       AND (o.is_invoker
            OR v.relkind = 'm' AND v.relispopulated
            OR has_any_column_privilege(v.relowner, coalesce(c.needed, c.oid), 'SELECT'))
),
-- A function that reads it for its callers, as far as PostgreSQL records dependencies of functions.
voice (owner, acl) AS (
    SELECT p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
      FROM copy AS o
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = o.oid
      JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
     WHERE p.prosecdef
       AND has_any_column_privilege(p.proowner, coalesce(o.needed, o.oid), 'SELECT')
       AND p.oid <> ALL (%(functions)s::oid[])
),
grantee (role) AS (
    SELECT a.grantee
      FROM copy AS o
      JOIN pg_class AS c ON c.oid = o.oid
     CROSS JOIN LATERAL aclexplode(c.relacl) AS a
     WHERE o.needed IS NULL
       AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee
      FROM copy AS o
      JOIN pg_class AS c ON c.oid = o.oid
      JOIN pg_attribute AS t ON t.attrelid = c.oid
     CROSS JOIN LATERAL aclexplode(t.attacl) AS a
     WHERE o.needed IS NULL
       AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee
      FROM voice AS v
     CROSS JOIN LATERAL aclexplode(v.acl) AS a
     WHERE a.grantee <> v.owner
),
candidate (oid, name, logs_in) AS (
    SELECT r.oid, r.rolname::text, r.rolcanlogin
      FROM pg_class AS p
      JOIN pg_roles AS r ON NOT r.rolsuper AND NOT pg_has_role(r.oid, p.relowner, 'MEMBER')
     WHERE p.oid = %(published)s
),
insider (role) AS MATERIALIZED (
    SELECT r.oid
      FROM pg_roles AS r
     WHERE has_table_privilege(r.oid, %(source)s::oid, 'SELECT')
),
-- Before PostgreSQL 16 there is no SET option; a role that may grant a role may grant it to itself.
known (role, name) AS (
    SELECT g.role, coalesce(r.rolname::text, 'PUBLIC')
      FROM grantee AS g
      LEFT JOIN pg_roles AS r ON r.oid = g.role
    UNION
    SELECT c.oid, c.name
      FROM grantee AS g
      JOIN candidate AS c
        ON pg_has_role(c.oid, g.role, 'USAGE')
        OR pg_has_role(c.oid, g.role,
                       CASE WHEN current_setting('server_version_num')::integer >= 160000
                            THEN 'SET' ELSE 'MEMBER' END)
        OR pg_has_role(c.oid, g.role, 'MEMBER WITH ADMIN OPTION')
     WHERE g.role <> 0
),
reader (role, name, is_stranger) AS (
    SELECT k.role, k.name, false
      FROM known AS k
     UNION ALL
    SELECT c.oid, c.name, true
      FROM candidate AS c
     WHERE EXISTS ({scene})
       AND c.logs_in
       AND c.oid NOT IN (SELECT k.role FROM known AS k)
       AND EXISTS (SELECT FROM grantee AS g WHERE g.role = 0)
       AND NOT EXISTS (SELECT FROM insider AS i WHERE pg_has_role(c.oid, i.role, 'MEMBER'))
),
-- The options of a membership do not matter: a role that may grant them can change them.
acting (reader, role, is_stranger) AS (
    SELECT r.name, r.role, r.is_stranger
      FROM reader AS r
    UNION
    SELECT a.reader, upper.role, a.is_stranger
      FROM acting AS a
     CROSS JOIN LATERAL (
           SELECT m.roleid
             FROM pg_auth_members AS m
            WHERE m.member = a.role
            UNION ALL
           SELECT r.oid
             FROM pg_database AS d
             JOIN pg_roles AS r ON r.rolname = 'pg_database_owner'
            WHERE d.datname = current_database()
              AND d.datdba = a.role
           ) AS upper (role)
)
SELECT a.reader, a.role, coalesce(r.rolname::text, a.reader), a.is_stranger
  FROM acting AS a
  LEFT JOIN pg_roles AS r ON r.oid = a.role

-- name: scene
-- The tables that a statement may read or write on its way to the source of a live view, and true if writing one may
-- write the source; no rows if the published relation is no live view.
--
-- A foreign key with the action CASCADE, SET NULL or SET DEFAULT writes the source when the referenced table is
-- written. Between two rows, the triggers of all of these tables fire, and those of tables that reference one of
-- them.
WITH RECURSIVE written (oid) AS (
    SELECT f.oid
      FROM unnest(%(family)s::oid[]) AS f (oid)
     WHERE EXISTS (SELECT
                     FROM pg_rewrite AS w
                     JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                    WHERE w.ev_class = %(published)s
                      AND d.refclassid = 'pg_class'::regclass
                      AND d.refobjid = ANY (%(family)s::oid[]))
    UNION
    SELECT near.oid
      FROM written AS t
     CROSS JOIN LATERAL (
           SELECT k.confrelid
             FROM pg_constraint AS k
            WHERE k.contype = 'f'
              AND k.conrelid = t.oid
              AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
            UNION ALL
           SELECT CASE WHEN i.inhparent = t.oid THEN i.inhrelid ELSE i.inhparent END
             FROM pg_inherits AS i
            WHERE t.oid IN (i.inhparent, i.inhrelid)
           ) AS near (oid)
)
SELECT w.oid, true
  FROM written AS w
 UNION
SELECT k.conrelid, false
  FROM written AS w
  JOIN pg_constraint AS k ON k.contype = 'f' AND k.confrelid = w.oid
 WHERE k.conrelid NOT IN (SELECT o.oid FROM written AS o)

-- name: signs
-- Possible paths of readers to private relations, by names in texts: functions whose body names the source, a view of
-- it or a private schema, and that run as a role that reads it. Readers call them, directly or as steps of an
-- aggregate, or fire them as triggers when they write, or as event triggers. Also foreign tables of files of the
-- server, which may contain a dump or the server's log, and views of them.
--
-- A trigger fires without a right on its function. It runs as its owner if it is SECURITY DEFINER; otherwise as the
-- writer, or, if a foreign key writes, as the owner of the table. Writing a view writes its relations, writing a
-- table its partitions, and rules write for other statements.
WITH RECURSIVE word (text, oid) AS (
    SELECT w.text, p.oid
      FROM unnest(%(classes)s::oid[], %(oids)s::oid[], %(origins)s::text[]) AS p (class, oid, origin)
      JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.oid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL (
           SELECT c.relname::text
            WHERE p.origin = 'source'
            UNION
           SELECT replace(c.relname, '"', '""')
            WHERE p.origin = 'source'
            UNION
           SELECT n.nspname::text
            WHERE n.nspname IN ('dbanon', 'dbanon_data')) AS w (text)
),
named (oid, word) AS (
    SELECT f.oid, w.text
      FROM (SELECT DISTINCT word.text FROM word) AS w
      JOIN pg_proc AS f
        ON f.prosrc ~* ('(^|\W)' || regexp_replace(w.text, '(\W)', '\\\1', 'g') || '($|\W)')
      JOIN pg_namespace AS n ON n.oid = f.pronamespace
      JOIN pg_language AS l ON l.oid = f.prolang AND l.lanname NOT IN ('internal', 'c')
     WHERE n.nspname NOT IN ('dbanon', 'dbanon_data')
       AND f.oid <> ALL (%(oids)s::oid[])
),
-- acting: the role as which the trigger runs, NULL for the writer.
set_off (oid, function, rights, of_columns, acting) AS (
    SELECT t.tgrelid, f.oid,
           concat_ws(', ', CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END,
                           CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
                           CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END,
                           CASE WHEN t.tgtype & 32 <> 0 THEN 'TRUNCATE' END),
           nullif(concat_ws(', ', CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END,
                                  CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END), ''),
           CASE WHEN f.prosecdef THEN f.proowner END
      FROM pg_trigger AS t
      JOIN pg_proc AS f ON f.oid = t.tgfoid
     WHERE f.oid IN (SELECT b.oid FROM named AS b)
       AND NOT t.tgisinternal
       AND t.tgenabled <> 'D'
    UNION
    SELECT above.oid, s.function, above.rights, above.of_columns, coalesce(s.acting, above.acting)
      FROM set_off AS s
     CROSS JOIN LATERAL (
           SELECT w.ev_class, coalesce(e.privilege, s.rights),
                  CASE WHEN w.ev_type = '1' THEN s.of_columns
                       ELSE nullif(e.privilege, 'DELETE') END, NULL::oid
             FROM pg_depend AS d
             JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
             LEFT JOIN (VALUES ('2', 'UPDATE'), ('3', 'INSERT'), ('4', 'DELETE'))
                    AS e (event, privilege)
               ON e.event::"char" = w.ev_type
            WHERE d.refclassid = 'pg_class'::regclass
              AND d.refobjid = s.oid
              AND w.ev_class <> s.oid
            UNION ALL
           SELECT i.inhparent, s.rights, s.of_columns, NULL
             FROM pg_inherits AS i
            WHERE i.inhrelid = s.oid
            UNION ALL
           SELECT k.confrelid, 'UPDATE, DELETE', 'UPDATE', c.relowner
             FROM pg_constraint AS k
             JOIN pg_class AS c ON c.oid = k.conrelid
            WHERE k.contype = 'f'
              AND k.conrelid = s.oid
              AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
           ) AS above (oid, rights, of_columns, acting)
),
-- Functions that run as a role that reads the relations they name.
reading (oid, acting) AS (
    SELECT DISTINCT b.oid, a.acting
      FROM named AS b
      JOIN (SELECT s.function, s.acting FROM set_off AS s WHERE s.acting IS NOT NULL
             UNION
            SELECT f.oid, f.proowner FROM pg_proc AS f WHERE f.prosecdef) AS a (function, acting)
        ON a.function = b.oid
     WHERE EXISTS (SELECT
                     FROM word AS w
                    WHERE w.text = b.word
                      AND has_any_column_privilege(a.acting, w.oid, 'SELECT'))
),
called (oid) AS (
    SELECT r.oid
      FROM reading AS r
      JOIN pg_proc AS f ON f.oid = r.oid AND f.prosecdef
    UNION
    -- The caller of an aggregate needs no right on its steps.
    SELECT g.aggfnoid
      FROM reading AS r
      JOIN pg_proc AS f ON f.oid = r.oid AND f.prosecdef
      JOIN pg_aggregate AS g
        ON f.oid IN (g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn,
                     g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn)
),
files (oid) AS (
    SELECT t.ftrelid
      FROM pg_foreign_table AS t
      JOIN pg_foreign_server AS s ON s.oid = t.ftserver
      JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
      JOIN pg_proc AS h ON h.oid = w.fdwhandler AND h.prosrc = 'file_fdw_handler'
    UNION
    SELECT w.ev_class
      FROM files AS f
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
)
SELECT a.reader, a.name, 'sign', n.nspname::text, f.proname::text,
       f.proowner = a.role
       OR EXISTS (SELECT FROM aclexplode(f.proacl) AS x WHERE x.grantee = a.role)
  FROM called AS b
  JOIN pg_proc AS f ON f.oid = b.oid
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON has_function_privilege(a.role, f.oid, 'EXECUTE')
 WHERE f.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
 UNION
SELECT a.reader, a.name, 'sign of an event trigger', n.nspname::text, f.proname::text, true
  FROM called AS b
  JOIN pg_event_trigger AS e ON e.evtfoid = b.oid AND e.evtenabled <> 'D'
  JOIN pg_proc AS f ON f.oid = b.oid
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
 CROSS JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
 UNION
SELECT a.reader, a.name, 'sign of a trigger', n.nspname::text, f.proname::text,
       c.relowner = a.role
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
  FROM set_off AS s
  JOIN pg_class AS c ON c.oid = s.oid
  JOIN pg_proc AS f ON f.oid = s.function
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON has_table_privilege(a.role, c.oid, s.rights)
    OR s.of_columns IS NOT NULL AND has_any_column_privilege(a.role, c.oid, s.of_columns)
 WHERE (s.function, s.acting) IN (SELECT r.oid, r.acting FROM reading AS r)
 UNION
SELECT a.reader, a.name, 'sign of a file', n.nspname::text, c.relname::text,
       c.relowner = a.role
       OR a.name LIKE 'pg\_%%'
       OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantee = a.role)
  FROM files AS f
  JOIN pg_class AS c ON c.oid = f.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON has_any_column_privilege(a.role, c.oid, 'SELECT')
