-- The first relation of that name along a list of schemas, with what publishing depends on.
SELECT c.oid,
       n.nspname,
       c.relkind::text,
       c.relrowsecurity,
       EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid),
       EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid),
       obj_description(c.oid, 'pg_class'),
       (SELECT array_agg(a.attname::text ORDER BY k.position)
          FROM pg_index AS x
         CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (attnum, position)
          JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
         WHERE x.indrelid = c.oid
           AND x.indisprimary
           AND k.position <= x.indnkeyatts),
       (SELECT CASE WHEN NOT x.indimmediate
                    THEN 'is deferrable: within a transaction, several rows may have one key'
                    WHEN NOT (x.indisvalid AND x.indisready AND x.indislive AND x.indisunique)
                    THEN 'has an index that is not valid: several rows may have one key' END
          FROM pg_index AS x
         WHERE x.indrelid = c.oid
           AND x.indisprimary)
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = ANY (%(schemas)s)
   AND c.relname = %(name)s
   AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 ORDER BY array_position(%(schemas)s::text[], n.nspname::text)
 LIMIT 1
