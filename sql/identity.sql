-- Checks that relations, functions and schemas are those that dbanon made.

-- name: event_triggers
-- Event triggers on DDL, each with its function.
SELECT e.evtname::text, n.nspname::text, p.proname::text
  FROM pg_event_trigger AS e
  JOIN pg_proc AS p ON p.oid = e.evtfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE e.evtenabled <> 'D'
   AND e.evtevent <> 'login'
 ORDER BY e.evtname

-- name: foreign_code
-- Functions and views of other roles that reading a relation may run. Planning evaluates constants in indexes,
-- statistics and partition keys with the reader's rights; views and row-level policies call functions per row. A
-- type runs the checks of its component types. A view can do more than its dependencies show, such as finding
-- tables by name, so its owner must be trusted. The view of a release is exempt: it reads private tables, which
-- only their owner can publish.
WITH RECURSIVE reached (class, id) AS (
    SELECT 'pg_class'::regclass::oid, %(relation)s::oid
    UNION
    SELECT part.class, part.id
      FROM reached AS r
     CROSS JOIN LATERAL (
           SELECT r.class, i.inhrelid
             FROM pg_inherits AS i
            WHERE r.class = 'pg_class'::regclass
              AND i.inhparent = r.id
            UNION ALL
           SELECT 'pg_rewrite'::regclass, w.oid
             FROM pg_rewrite AS w
            WHERE r.class = 'pg_class'::regclass
              AND w.ev_class = r.id
              AND w.ev_type = '1'
            UNION ALL
           {parts}
            UNION ALL
           SELECT d.refclassid, d.refobjid
             FROM pg_depend AS d
            WHERE d.classid = r.class
              AND d.objid = r.id
              -- Until PostgreSQL 14, a generated column itself depends on its functions; only writing calls them.
              AND NOT EXISTS (SELECT
                                FROM pg_attribute AS a
                               WHERE d.classid = 'pg_class'::regclass
                                 AND a.attrelid = d.objid
                                 AND a.attnum = d.objsubid
                                 AND a.attgenerated = 's')
              AND (d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
                   OR d.refclassid IN ('pg_class'::regclass, 'pg_type'::regclass)
                      AND r.class IN ('pg_rewrite'::regclass, 'pg_policy'::regclass))
           ) AS part (class, id)
)
SELECT n.nspname, p.proname, pg_get_userbyid(p.proowner)::text
  FROM reached AS r
  JOIN pg_proc AS p ON r.class = 'pg_proc'::regclass AND p.oid = r.id
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  JOIN pg_roles AS o ON o.oid = p.proowner
 WHERE NOT o.rolsuper
   AND o.rolname NOT IN (current_user, session_user)
   -- What tells a snapshot that it is too old runs with the rights of the release's owner, not with
   -- those of whoever reads.
   AND NOT (n.nspname = 'dbanon_data'
            AND p.proname ~ '^seen_[0-9]+$'
            AND p.prosecdef
            AND p.proowner = (SELECT c.relowner FROM pg_class AS c WHERE c.oid = %(relation)s))
 UNION
SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner)::text
  FROM reached AS r
  JOIN pg_class AS c ON r.class = 'pg_class'::regclass AND c.oid = r.id AND c.relkind = 'v'
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_roles AS o ON o.oid = c.relowner
 WHERE NOT o.rolsuper
   AND o.rolname NOT IN (current_user, session_user)
   AND NOT EXISTS (SELECT
                     FROM pg_rewrite AS w
                     JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                     JOIN pg_class AS t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
                     JOIN pg_namespace AS s ON s.oid = t.relnamespace
                    WHERE w.ev_class = c.oid
                      AND s.nspname = 'dbanon_data'
                      AND t.relowner = c.relowner)
 ORDER BY 1, 2

-- name: foreign_event_triggers
-- Event triggers with a function of an untrusted role. It runs at each DDL statement with the rights of the
-- current role, and its owner may replace it at any time.
SELECT e.evtname::text, n.nspname::text, p.proname::text, r.rolname::text
  FROM pg_event_trigger AS e
  JOIN pg_proc AS p ON p.oid = e.evtfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  JOIN pg_roles AS r ON r.oid = p.proowner
 WHERE e.evtenabled <> 'D'
   AND NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user)
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
 ORDER BY e.evtname

-- name: moved_names
-- Names that refer to another relation now. to_regclass ignores the snapshot, but uses the session's catalog
-- cache, which opening a relation by name refreshes.
SELECT a.name
  FROM unnest(%(oids)s::oid[], %(names)s::text[]) AS a (relation, name)
  LEFT JOIN pg_class AS c ON c.oid = a.relation
 WHERE to_regclass(a.name) IS DISTINCT FROM a.relation
    OR c.oid IS NULL

-- name: opened_relations
-- Relations that this transaction opened, except the admitted ones with their parts, and dbanon's own. The locks
-- last until the end, even if names change. A relation without a name was created and dropped by this transaction.
WITH RECURSIVE known (relation) AS (
    SELECT a.relation
      FROM unnest(%(admitted)s::oid[]) AS a (relation)
    UNION
    SELECT part.relation
      FROM known AS k
     CROSS JOIN LATERAL (
           SELECT i.inhrelid
             FROM pg_inherits AS i
            WHERE i.inhparent = k.relation
            UNION ALL
           SELECT x.indexrelid
             FROM pg_index AS x
            WHERE x.indrelid = k.relation
            UNION ALL
           SELECT d.refobjid
             FROM pg_rewrite AS w
             JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            WHERE w.ev_class = k.relation
              AND w.ev_type = '1'
              AND d.refclassid = 'pg_class'::regclass
           ) AS part (relation)
)
SELECT o.name
  FROM pg_locks AS l
 CROSS JOIN LATERAL (SELECT l.relation::regclass::text) AS o (name)
  LEFT JOIN pg_class AS c ON c.oid = l.relation
  LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE l.locktype = 'relation'
   AND l.pid = pg_backend_pid()
   AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND l.relation >= 16384
   AND coalesce(n.nspname, '') NOT IN ('dbanon', 'dbanon_data', 'pg_toast')
   AND c.relnamespace IS DISTINCT FROM pg_my_temp_schema()
   AND coalesce(n.nspname, '') !~ '^pg_toast_temp_'
   AND o.name !~ '^[0-9]+$'
   AND NOT EXISTS (SELECT FROM known AS k WHERE k.relation = l.relation)
 ORDER BY o.name

-- name: parts_of_read
-- The parts of a relation or type "r" that every reader uses: indexes, statistics, policies, constraints of
-- domains, and component types.
SELECT r.class, x.indexrelid
  FROM pg_index AS x
 WHERE r.class = 'pg_class'::regclass
   AND x.indrelid = r.id
 UNION ALL
SELECT 'pg_statistic_ext'::regclass, s.oid
  FROM pg_statistic_ext AS s
 WHERE r.class = 'pg_class'::regclass
   AND s.stxrelid = r.id
 UNION ALL
SELECT 'pg_policy'::regclass, p.oid
  FROM pg_policy AS p
 WHERE r.class = 'pg_class'::regclass
   AND p.polrelid = r.id
 UNION ALL
SELECT 'pg_constraint'::regclass, n.oid
  FROM pg_constraint AS n
 WHERE r.class = 'pg_type'::regclass
   AND n.contypid = r.id
 UNION ALL
SELECT r.class, t.part
  FROM (SELECT b.typbasetype FROM pg_type AS b WHERE b.oid = r.id
         UNION ALL
        SELECT e.typelem FROM pg_type AS e WHERE e.oid = r.id
         UNION ALL
        SELECT g.rngsubtype  -- PostgreSQL 13 has no multiranges
          FROM pg_range AS g
         WHERE r.id IN (g.rngtypid, (to_jsonb(g) ->> 'rngmultitypid')::oid)
         UNION ALL
        SELECT a.atttypid
          FROM pg_type AS c
          JOIN pg_attribute AS a ON a.attrelid = c.typrelid AND a.attnum > 0
         WHERE c.oid = r.id) AS t (part)
 WHERE r.class = 'pg_type'::regclass
   AND t.part <> 0

-- name: serves_release
-- Test if a view reads the private tables of a release and has their owner. Any view can name these tables, but
-- only one of their owner can read them for others.
SELECT EXISTS (SELECT
                 FROM pg_class AS v
                 JOIN pg_rewrite AS w ON w.ev_class = v.oid
                 JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                 JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
                 JOIN pg_namespace AS n ON n.oid = c.relnamespace
                 JOIN pg_roles AS r ON r.oid = v.relowner
                WHERE v.oid = %(view)s
                  AND v.relkind = 'v'
                  AND (v.relowner = c.relowner OR r.rolsuper)
                  AND n.nspname = 'dbanon_data'
                  AND c.relname ~ %(tables)s)

-- name: strangers_publication
-- The parts of a published view and its schema that an untrusted role owns: neither the owner of the private
-- tables, nor this role, the owner of the database or a superuser.
WITH owned (name, owner) AS (
    SELECT format('schema %%I', n.nspname), n.nspowner
      FROM pg_namespace AS n
     WHERE n.nspname = %(schema)s
    UNION ALL
    SELECT format('%%I.%%I', n.nspname, c.relname), c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = %(view)s
)
SELECT o.name, r.rolname::text
  FROM owned AS o
  JOIN pg_roles AS r ON r.oid = o.owner
 WHERE NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user, 'pg_database_owner')
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
   AND r.oid NOT IN (SELECT c.relowner
                       FROM pg_class AS c
                       JOIN pg_namespace AS n ON n.oid = c.relnamespace
                      WHERE n.nspname = 'dbanon_data'
                        AND c.relname ~ %(tables)s)
 ORDER BY 1
