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
),
element (attnum, typid) AS (
    SELECT b.attnum, t.typelem
      FROM base AS b
      JOIN pg_type AS t ON t.oid = b.typid
     WHERE t.typtype = 'b'
       AND t.typcategory = 'A'
    UNION ALL
    SELECT e.attnum, t.typbasetype
      FROM element AS e
      JOIN pg_type AS t ON t.oid = e.typid
     WHERE t.typtype = 'd'
),
-- What it is, or holds; whether that is a type whose texts nobody can change: the labels of an enum
-- are its owner's, and the name of a table, which regclass shows, is that table's owner's.
content (attnum, is_array, array_type, is_lasting) AS (
    SELECT b.attnum,
           e.attnum IS NOT NULL,
           (SELECT a.typname FROM pg_type AS a WHERE a.oid = t.typarray),
           t.typnamespace = 'pg_catalog'::regnamespace
               AND t.typname NOT LIKE 'reg%%'
               AND t.typname <> 'aclitem'
      FROM base AS b
      JOIN pg_type AS o ON o.oid = b.typid AND o.typtype <> 'd'
      LEFT JOIN (element AS e
                 JOIN pg_type AS et ON et.oid = e.typid AND et.typtype <> 'd')
        ON e.attnum = b.attnum
      JOIN pg_type AS t ON t.oid = coalesce(et.oid, o.oid)
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
       a.attgenerated = 'v',
       CASE WHEN NOT c.is_lasting THEN CASE WHEN c.is_array THEN '_text' ELSE 'text' END
            WHEN c.is_array AND n.nspname <> 'pg_catalog' THEN c.array_type
            WHEN t.oid <> a.atttypid THEN t.typname
       END,
       EXISTS (SELECT
                 FROM pg_collation AS l
                WHERE l.oid = a.attcollation
                  AND l.collnamespace <> 'pg_catalog'::regnamespace
                  AND l.collisdeterministic),
       EXISTS (SELECT
                 FROM pg_collation AS l
                WHERE l.oid = a.attcollation
                  AND NOT l.collisdeterministic)
  FROM base AS b
  JOIN content AS c ON c.attnum = b.attnum
  JOIN pg_type AS t ON t.oid = b.typid AND t.typtype <> 'd'
  JOIN pg_namespace AS n ON n.oid = t.typnamespace
  JOIN pg_attribute AS a ON a.attrelid = %(relation)s AND a.attnum = b.attnum
 ORDER BY a.attnum
