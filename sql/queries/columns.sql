-- The columns of a relation, each with the type that lies below all its domains.
WITH RECURSIVE base (attnum, typid) AS (
    SELECT a.attnum, a.atttypid
      FROM pg_attribute AS a
     WHERE a.attrelid = %(relation)s
       AND a.attnum > 0
       AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, t.typbasetype
      FROM base AS b
      JOIN pg_type AS t ON t.oid = b.typid
     WHERE t.typtype = 'd'
)
SELECT a.attname,
       format_type(a.atttypid, a.atttypmod),
       t.typname,
       n.nspname,
       NOT a.attnotnull
           OR EXISTS (SELECT
                        FROM pg_constraint AS n
                       WHERE n.conrelid = a.attrelid
                         AND n.contype = 'n'
                         AND NOT n.convalidated
                         AND n.conkey = ARRAY[a.attnum]),
       col_description(a.attrelid, a.attnum),
       a.attgenerated <> '',
       a.attidentity <> '',
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
          FROM pg_enum AS e
         WHERE e.enumtypid = t.oid),
       (n.nspname <> 'pg_catalog' AND t.typtype IN ('b', 'c', 'p', 'r', 'm'))
           AND NOT EXISTS (SELECT
                             FROM pg_type AS element
                             JOIN pg_namespace AS en ON en.oid = element.typnamespace
                            WHERE element.typarray = t.oid
                              AND (en.nspname = 'pg_catalog' OR element.typtype IN ('e', 'd'))),
       t.typtype IN ('e', 'r', 'm')
           OR t.typname = 'varchar'
           OR (t.typcategory = 'A' AND t.typname <> '_json' AND t.typname <> '_xml')
           OR EXISTS (SELECT
                        FROM pg_opclass AS o
                        JOIN pg_am AS m ON m.oid = o.opcmethod
                       WHERE o.opcdefault
                         AND m.amname = 'btree'
                         AND o.opcintype = t.oid),
       t.oid <> a.atttypid,
       a.attgenerated = 'v'
  FROM base AS b
  JOIN pg_type AS t ON t.oid = b.typid AND t.typtype <> 'd'
  JOIN pg_namespace AS n ON n.oid = t.typnamespace
  JOIN pg_attribute AS a ON a.attrelid = %(relation)s AND a.attnum = b.attnum
 ORDER BY a.attnum
