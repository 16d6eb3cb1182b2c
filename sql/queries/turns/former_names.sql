-- The names of published tables that are gone, each with its releases that are served on; none unless
-- the relation was published before, by another name: the open publication is its first turn else.
SELECT r.table_schema, r.table_name,
       coalesce(array_agg(r.release_id ORDER BY r.release_id) FILTER (WHERE r.served), '{}')
  FROM dbanon.release AS r
 WHERE EXISTS (SELECT
                 FROM dbanon.publishing AS p
                WHERE p.source = %(source)s
                  AND p.turns > 1)
   AND NOT EXISTS (SELECT
                     FROM dbanon.release AS o
                    WHERE o.table_schema = %(schema)s
                      AND o.table_name = %(name)s)
   AND NOT EXISTS (SELECT
                     FROM pg_class AS c
                     JOIN pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE n.nspname = r.table_schema
                      AND c.relname = r.table_name)
 GROUP BY r.table_schema, r.table_name
 ORDER BY r.table_schema, r.table_name
