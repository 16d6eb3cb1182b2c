-- The tables that a statement may read or write on its way to the source of a live view, and whether
-- to write one may write the source; nothing if the published relation is no live view.
--
-- A foreign key whose action is a cascade, SET NULL or SET DEFAULT writes the source when the table
-- that it points at is written. Between two rows fires whatever stands on any of these tables, and
-- on those that point at one of them.
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
