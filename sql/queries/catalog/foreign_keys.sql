-- The foreign keys of a table to others, or of the tables that a view is made of: their columns, and the
-- relation that they refer to. One to a partitioned table has a copy for each partition, which is left out.
WITH RECURSIVE part (oid) AS (
    SELECT %(relation)s::oid
    UNION
    SELECT d.refobjid
      FROM part AS p
      JOIN pg_rewrite AS w ON w.ev_class = p.oid AND w.ev_type = '1'
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
     WHERE d.refclassid = 'pg_class'::regclass
)
SELECT ARRAY(SELECT a.attname::text
               FROM unnest(k.conkey) WITH ORDINALITY AS c (attnum, position)
               JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = c.attnum
              ORDER BY c.position) AS columns,
       n.nspname,
       r.relname
  FROM part AS p
  JOIN pg_constraint AS k ON k.conrelid = p.oid
  JOIN pg_class AS r ON r.oid = k.confrelid
  JOIN pg_namespace AS n ON n.oid = r.relnamespace
 WHERE k.contype = 'f'
   AND k.confrelid <> k.conrelid
   AND NOT EXISTS (SELECT
                     FROM pg_constraint AS above
                    WHERE above.oid = k.conparentid
                      AND above.conrelid = k.conrelid)
 ORDER BY columns, n.nspname, r.relname
