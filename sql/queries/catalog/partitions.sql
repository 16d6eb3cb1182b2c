-- A partitioned table with all its partitions, those above before those below, each with its ancestors.
SELECT c.oid, n.nspname, c.relname, c.relkind::text,
       ARRAY(SELECT a.relid::oid FROM pg_partition_ancestors(c.oid) AS a)
  FROM pg_partition_tree(%s) AS t
  JOIN pg_class AS c ON c.oid = t.relid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY t.level, c.oid
