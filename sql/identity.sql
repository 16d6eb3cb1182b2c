-- Whether relations, functions and schemas are those that dbanon made.

-- name: event_triggers
-- Event triggers that run at a change of definitions, each with its function.
SELECT e.evtname::text, n.nspname::text, p.proname::text
  FROM pg_event_trigger AS e
  JOIN pg_proc AS p ON p.oid = e.evtfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE e.evtenabled <> 'D'
   AND e.evtevent <> 'login'
 ORDER BY e.evtname

-- name: foreign_code
-- Functions and views of other roles that reading a relation may run: PostgreSQL computes what is
-- constant in an index, in statistics and in a partition key already when it plans, with the rights of
-- whoever reads; what a view or a row-level policy calls, it runs row by row. A type runs the checks of
-- those that it is made of. A view can do more than its dependencies tell: find types and tables by
-- their names, or ask for what whoever reads it may see. So its owner must be trusted; but a release's
-- view shows private tables, which nobody but their owner can show.
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
-- Event triggers whose function a role owns that is no authority here: it runs at each change of
-- definitions with the rights of whoever makes it, and its owner may replace it at any time.
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
-- Names that mean another relation by now. to_regclass looks at what is, not at the transaction's
-- snapshot, but in a session that was told of all changes: opening a relation by name tells it.
SELECT a.name
  FROM unnest(%(oids)s::oid[], %(names)s::text[]) AS a (relation, name)
  LEFT JOIN pg_class AS c ON c.oid = a.relation
 WHERE to_regclass(a.name) IS DISTINCT FROM a.relation
    OR c.oid IS NULL

-- name: opened_relations
-- Relations that this transaction has opened, though they are none of the admitted, of what these
-- consist of, and of dbanon's own. Their locks are kept until its end, whatever their names mean by
-- then. What has no name any more was made and dropped by this transaction: nobody else can drop it.
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
SELECT DISTINCT o.name
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
-- What of a relation or a type "r" PostgreSQL looks at whenever somebody reads it: indexes, statistics and
-- policies, the constraints of a domain, and the types that a type is made of.
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
        SELECT g.rngsubtype FROM pg_range AS g WHERE r.id IN (g.rngtypid, g.rngmultitypid)
         UNION ALL
        SELECT a.atttypid
          FROM pg_type AS c
          JOIN pg_attribute AS a ON a.attrelid = c.typrelid AND a.attnum > 0
         WHERE c.oid = r.id) AS t (part)
 WHERE r.class = 'pg_type'::regclass
   AND t.part <> 0

-- name: serves_release
-- Whether a view reads the private tables of a release, and belongs to whom they belong. Only who may
-- act as their owner can read them for others, but a view of anybody's can name them.
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
-- What of a published view and of its schema a stranger owns: neither who owns the private tables of
-- its release, nor this role, the owner of the database or a superuser.
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
