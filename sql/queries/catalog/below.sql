-- What a view or a materialized view is made of, down to the tables and their partitions, and through
-- other views.
WITH RECURSIVE below (oid) AS (
    SELECT d.refobjid
      FROM pg_rewrite AS w
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
     WHERE w.ev_class = %(relation)s
       AND w.ev_type = '1'
       AND d.refclassid = 'pg_class'::regclass
       AND d.refobjid <> w.ev_class
    UNION
    SELECT part.oid
      FROM below AS b
     CROSS JOIN LATERAL (
           SELECT d.refobjid
             FROM pg_rewrite AS w
             JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            WHERE w.ev_class = b.oid
              AND w.ev_type = '1'
              AND d.refclassid = 'pg_class'::regclass
              AND d.refobjid <> w.ev_class
            UNION ALL
           SELECT i.inhrelid
             FROM pg_inherits AS i
            WHERE i.inhparent = b.oid
           ) AS part (oid)
)
SELECT n.nspname, c.relname, c.relkind::text, c.relrowsecurity
  FROM below AS b
  JOIN pg_class AS c ON c.oid = b.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY 1, 2
