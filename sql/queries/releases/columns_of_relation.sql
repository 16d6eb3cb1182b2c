-- The columns of a relation in their order, each with its type and collation as a cast spells them.
SELECT a.attname::text,
       concat_ws(' COLLATE ', format_type(a.atttypid, a.atttypmod),
                 (SELECT format('%%I.%%I', n.nspname, l.collname)
                    FROM pg_collation AS l
                    JOIN pg_namespace AS n ON n.oid = l.collnamespace
                    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typcollation <> l.oid
                   WHERE l.oid = a.attcollation))
  FROM pg_attribute AS a
 WHERE a.attrelid = %(relation)s
   AND a.attnum > 0
   AND NOT a.attisdropped
 ORDER BY a.attnum
