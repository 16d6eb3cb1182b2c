-- What a published relation hides: the source with its ancestors and partitions, and what a view as
-- the source is made of; the metadata and the data of releases; and what the catalogs say is made of
-- these; and from which of both it stems.
--
-- Made of them are views, materialized views, foreign tables that lead back to them, and functions
-- that use them or a type of their rows. Other published relations are not private. Their long values
-- are in TOAST tables, which only the owner can read unless somebody is granted that.
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
private (class, oid, origin) AS (
    SELECT 'pg_class'::regclass::oid, f.oid, 'source'
      FROM family AS f
    UNION
    SELECT 'pg_class'::regclass::oid, c.oid, 'metadata'
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
       AND n.nspname IN ('dbanon', 'dbanon_data')
       -- What was set aside shows nothing, and others made theirs of it when it was published.
       AND NOT (n.nspname = 'dbanon_data' AND c.relname ~ '^retired_[0-9]+$')
    UNION
    SELECT 'pg_proc'::regclass::oid, p.oid, 'metadata'
      FROM pg_proc AS p
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE n.nspname = 'dbanon_data'
       -- Readers call what tells whether a release may be read; it answers yes or no.
       AND p.proname !~ '^seen_[0-9]+$'
    UNION
    SELECT made.class, made.oid, m.origin
      FROM private AS m
     CROSS JOIN LATERAL (
           SELECT 'pg_class'::regclass, w.ev_class
             FROM pg_depend AS d
             JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
            WHERE d.refclassid = m.class
              AND d.refobjid = m.oid
              AND w.ev_class <> m.oid
              AND w.ev_class NOT IN (SELECT s.oid FROM served AS s)
            UNION ALL
           SELECT d.classid, d.objid
             FROM pg_depend AS d
            WHERE d.refclassid = m.class
              AND d.refobjid = m.oid
              AND d.classid = 'pg_proc'::regclass
            UNION ALL
           SELECT 'pg_type'::regclass, t.oid
             FROM pg_class AS c
             JOIN pg_type AS r ON r.oid = c.reltype
             JOIN pg_type AS t ON t.oid IN (r.oid, r.typarray)
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
            UNION ALL
           SELECT m.class, l.oid
             FROM pg_class AS c
             JOIN pg_class AS l ON l.oid = c.reltoastrelid
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
              AND l.relacl IS NOT NULL
            UNION ALL
           SELECT m.class, p.oid
             FROM pg_class AS c
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pointing AS p ON p.schema = n.nspname AND p.name = c.relname
            WHERE m.class = 'pg_class'::regclass
              AND c.oid = m.oid
           ) AS made (class, oid)
)
SELECT p.class, p.oid, p.origin,
       p.class = 'pg_class'::regclass AND p.oid IN (SELECT f.oid FROM family AS f),
       p.class = 'pg_class'::regclass
  FROM private AS p
