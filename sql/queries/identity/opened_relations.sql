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
