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
           SELECT 'pg_rewrite'::regclass, w.oid
             FROM pg_rewrite AS w
            WHERE r.class = 'pg_class'::regclass
              AND w.ev_class = r.id
              AND w.ev_type = '1'
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
