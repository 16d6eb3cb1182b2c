-- What may lead readers to what is private, as far as a name in a text can tell: functions whose
-- body names the source, a view of it or a private schema, and that run as a role that reads what is
-- named. Readers call them, if not as steps of an aggregate, set them off as triggers when they write,
-- or as event triggers. And foreign tables of files of the server, which may be those of a dump or of
-- the server's log, and views of them.
--
-- A trigger needs no right to be set off but that to write. It runs as its owner if it is SECURITY
-- DEFINER; else as who writes, or, where a foreign key writes, as the owner of the table. Writing a view
-- writes what it is made of, writing a table its partitions, and rules write for other statements.
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
-- acting: as whom the trigger runs, NULL as long as that is who writes.
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
-- Functions that run as a role that reads what they name.
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
    -- Whoever may call an aggregate needs no right on its steps.
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
