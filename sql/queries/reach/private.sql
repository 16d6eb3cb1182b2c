-- What a published relation hides: the source with its ancestors and partitions, and what a view as
-- the source is made of; the metadata and the data of releases; and what the catalogs say is made of
-- these; and from which of both it stems.
--
-- Made of them are views, materialized views, foreign tables that lead back to them, and functions
-- that use them or a type of their rows. Other published relations are not private. Their long values
-- are in TOAST tables, which only the owner can read unless somebody is granted that.
--
-- A view or a function that uses what its owner has no right on shows nothing of it, and anybody can
-- make one. way: as whose it uses that, its 'owner' or its 'invoker'; then needed is a relation that
-- whatever uses it in turn must have a right on. A table whose row-level 'policy' uses what is private
-- is not private: the policy reads with the rights of whoever uses the table, the owner of a view too.
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
       -- What was set aside shows nothing, and others made theirs of it when it was published.
       AND NOT (n.nspname = 'dbanon_data' AND c.relname ~ '^retired_[0-9]+$')
    UNION
    SELECT 'pg_proc'::regclass::oid, p.oid, 'metadata', NULL, 'owner'
      FROM pg_proc AS p
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE n.nspname = 'dbanon_data'
       -- Readers call what tells whether a release may be read; it answers yes or no.
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
           -- An aggregate calls its steps for whoever may call it.
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
