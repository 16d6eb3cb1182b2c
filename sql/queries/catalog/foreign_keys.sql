-- The foreign keys of a table: their columns, and the relation that they refer to. One to a partitioned
-- table has a copy for each of its partitions, which is not asked for.
SELECT ARRAY(SELECT a.attname::text
               FROM unnest(k.conkey) WITH ORDINALITY AS c (attnum, position)
               JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = c.attnum
              ORDER BY c.position) AS columns,
       n.nspname,
       r.relname
  FROM pg_constraint AS k
  JOIN pg_class AS r ON r.oid = k.confrelid
  JOIN pg_namespace AS n ON n.oid = r.relnamespace
 WHERE k.conrelid = %(relation)s
   AND k.contype = 'f'
   AND NOT EXISTS (SELECT
                     FROM pg_constraint AS above
                    WHERE above.oid = k.conparentid
                      AND above.conrelid = k.conrelid)
 ORDER BY columns, n.nspname, r.relname
