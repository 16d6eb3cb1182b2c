-- Which functions and types of readers come into play when others read or write what is private, or a table that writes
-- it in turn: of triggers, rules, constraints, defaults, indexes, policies and types. They see the
-- rows, and a live view between two of them.
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
           SELECT 'pg_constraint'::regclass, k.oid
             FROM pg_constraint AS k
            WHERE r.class = 'pg_type'::regclass
              AND k.contypid = r.id
            UNION ALL
           SELECT 'pg_attrdef'::regclass, d.oid
             FROM pg_attrdef AS d
            WHERE r.class = 'pg_class'::regclass
              AND d.adrelid = r.id
            UNION ALL
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
           SELECT 'pg_type'::regclass, a.atttypid
             FROM pg_attribute AS a
            WHERE r.class = 'pg_class'::regclass
              AND a.attrelid = r.id
              AND NOT a.attisdropped
            UNION ALL
           SELECT r.class, y.oid
             FROM pg_type AS t
             JOIN pg_type AS y ON y.oid IN (t.typbasetype, t.typelem)
                 OR y.oid IN (SELECT a.atttypid FROM pg_attribute AS a
                               WHERE a.attrelid = t.typrelid AND a.attnum > 0)
                 OR y.oid IN (SELECT g.rngsubtype FROM pg_range AS g WHERE g.rngtypid = t.oid)
            WHERE r.class = 'pg_type'::regclass
              AND t.oid = r.id
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
-- Whoever owns a type can give it casts and operators of their own at any time.
SELECT a.reader, a.name, 'type', n.nspname::text, t.typname::text, true
  FROM reached AS r
  JOIN pg_type AS t ON r.class = 'pg_type'::regclass AND t.oid = r.id AND t.typtype <> 'p'
  JOIN pg_namespace AS n ON n.oid = t.typnamespace
  JOIN unnest(%(all_readers)s::text[], %(all_roles)s::oid[], %(all_names)s::text[])
       AS a (reader, role, name)
    ON a.role = t.typowner
