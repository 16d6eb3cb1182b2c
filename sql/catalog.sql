-- Facts about tables, columns, types and relations from the catalogs.

-- name: below
-- The relations that a view or materialized view reads, through other views, down to tables and partitions.
WITH RECURSIVE below (oid) AS (
    SELECT d.refobjid
      FROM pg_rewrite AS w
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
     WHERE w.ev_class = f.oid
       AND w.ev_type = '1'
       AND d.refclassid = 'pg_class'::regclass
       AND d.refobjid <> w.ev_class
    UNION
    SELECT part.oid
      FROM below AS b
     CROSS JOIN LATERAL (
           SELECT d.refobjid
             FROM pg_rewrite AS w
             JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            WHERE w.ev_class = b.oid
              AND w.ev_type = '1'
              AND d.refclassid = 'pg_class'::regclass
              AND d.refobjid <> w.ev_class
            UNION ALL
           SELECT i.inhrelid
             FROM pg_inherits AS i
            WHERE i.inhparent = b.oid
           ) AS part (oid)
)
SELECT n.nspname, c.relname, c.relkind::text, c.relrowsecurity
  FROM below AS b
  JOIN pg_class AS c ON c.oid = b.oid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY 1, 2

-- name: column_comments
-- The comments on columns of a relation.
SELECT a.attname::text, d.description
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_attribute AS a ON a.attrelid = c.oid
  JOIN pg_description AS d
    ON d.classoid = 'pg_class'::regclass
   AND d.objoid = c.oid
   AND d.objsubid = a.attnum
 WHERE n.nspname = %s
   AND c.relname = %s
   AND a.attnum > 0
 ORDER BY a.attnum

-- name: columns
-- The columns of a relation, each with the base type of its domains.
WITH RECURSIVE base (attnum, typid) AS (
    SELECT a.attnum, a.atttypid
      FROM pg_attribute AS a
     WHERE a.attrelid = f.oid
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
-- Its type or that of its elements; true if no role can change the texts of its values: owners can rename the labels
-- of an enum, and tables, which regclass shows.
content (attnum, is_array, array_type, is_lasting) AS MATERIALIZED (
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
  JOIN pg_attribute AS a ON a.attrelid = f.oid AND a.attnum = b.attnum
 ORDER BY a.attnum

-- name: describe
-- The first relation of a name in a list of schemas, with its columns.
WITH found AS MATERIALIZED (
    SELECT c.oid,
           n.nspname,
           c.relkind::text AS relkind,
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
)
SELECT f.*,
       (SELECT json_agg(c) FROM ({columns}) AS c ({names}))
  FROM found AS f

-- name: estimated_distinct
-- The estimated number of distinct values of a column, if the role may see its statistics.
SELECT s.n_distinct
  FROM pg_stats AS s
  JOIN pg_namespace AS n ON n.nspname = s.schemaname
  JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
 WHERE c.oid = %(relation)s
   AND s.attname = %(column)s
   AND NOT s.inherited

-- name: estimated_rows
-- About how many rows a table and its partitions have, by their present size.
SELECT coalesce(sum(
           CASE WHEN c.relpages > 0 AND c.reltuples > 0
                THEN c.reltuples / c.relpages
                ELSE 40
           END * (pg_relation_size(c.oid) / current_setting('block_size')::bigint)), 0)::bigint
  FROM pg_class AS c
 WHERE c.relkind = 'r'
   AND (c.oid = %(relation)s OR c.oid IN (SELECT t.relid FROM pg_partition_tree(%(relation)s) AS t))

-- name: foreign_keys
-- The foreign keys of a table, or of the tables below a view: their columns and the referenced relation.
-- The copies for partitions of a referenced table are left out.
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

-- name: frequent_values
-- The most frequent values of a column, without those of too few rows or persons.
(SELECT {number}, {value}, count(*)
   FROM seen
  WHERE {value} IS NOT NULL
  GROUP BY {value}
 HAVING count({counted}) >= {least}
  ORDER BY count(*) DESC, {value}
  LIMIT {most})

-- name: name_of_relation
-- The schema and the name of a relation, given by OID.
SELECT n.nspname,
       c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = %(relation)s

-- name: partitions
-- A partitioned table with all its partitions, parents first, each with its ancestors.
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text,
       ARRAY(SELECT a.relid::oid::bigint FROM pg_partition_ancestors(c.oid) AS a)
  FROM pg_partition_tree(f.oid) AS t
  JOIN pg_class AS c ON c.oid = t.relid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY t.level, c.oid

-- name: parts
-- The partitions of a partitioned table; the relations that a view reads, and the VOLATILE functions that it calls.
-- What another kind has is not planned, as the kind is a constant of the plan.
SELECT CASE WHEN %(kind)s = 'p' THEN
           (SELECT json_agg(p) FROM ({partitions}) AS p (oid, schema, name, kind, ancestors))
       END,
       CASE WHEN %(kind)s IN ('v', 'm') THEN
           (SELECT json_agg(b) FROM ({below}) AS b (schema, name, relkind, row_security))
       END,
       CASE WHEN %(kind)s IN ('v', 'm') THEN
           (SELECT json_agg(v) FROM ({volatile}) AS v (schema, name))
       END
  FROM (SELECT %(relation)s::oid AS oid) AS f

-- name: readable_columns
-- The columns of a relation, among some, that the current role may read.
SELECT a.attname::text
  FROM pg_attribute AS a
 WHERE a.attrelid = %(relation)s
   AND a.attname = ANY (%(names)s)
   AND a.attnum > 0
   AND NOT a.attisdropped
   AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')

-- name: readable_tables
-- The relations that the role may read, with their estimated rows and their size.
SELECT n.nspname, c.relname, c.relkind::text, c.reltuples::bigint, pg_relation_size(c.oid)
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND NOT c.relispartition
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'dbanon', 'dbanon_data')
   AND n.nspname !~ '^pg_(toast|temp)'
   AND has_schema_privilege(n.oid, 'USAGE')
   AND has_any_column_privilege(c.oid, 'SELECT')
 ORDER BY 1, 2

-- name: relation_comment
-- The comment of a relation.
SELECT obj_description(%s, 'pg_class')

-- name: relation_oids
-- The relations of those schemas and names that exist.
SELECT c.oid
  FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS a (schema, name, place)
  JOIN pg_namespace AS n ON n.nspname = a.schema
  JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = a.name
 ORDER BY a.place

-- name: schema_exists
-- Test if a schema of that name exists.
SELECT 1
  FROM pg_namespace
 WHERE nspname = %s

-- name: similar_relations
-- Tables of this database: those that differ only in case or schema first, then names of similar length.
SELECT n.nspname, c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE abs(length(c.relname) - length(%(name)s)) <= 2
   AND c.relkind IN ('r', 'p')
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'dbanon', 'dbanon_data')
   AND n.nspname NOT LIKE 'pg\_toast%%'
   AND n.nspname NOT LIKE 'pg\_temp%%'
 ORDER BY lower(c.relname) = lower(%(name)s) DESC, 1, 2
 LIMIT 5000

-- name: table_shape
-- The parts of a table that a policy depends on, as a document; names and types do not depend on search_path.
WITH RECURSIVE part (oid) AS (
    SELECT %(relation)s::oid
    UNION
    SELECT i.inhrelid
      FROM part AS p
      JOIN pg_inherits AS i ON i.inhparent = p.oid
),
viewed (oid) AS (
    SELECT c.oid
      FROM pg_class AS c
     WHERE c.oid = %(relation)s
       AND c.relkind IN ('v', 'm')
    UNION
    SELECT c.oid
      FROM viewed AS v
      JOIN pg_rewrite AS w ON w.ev_class = v.oid AND w.ev_type = '1'
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
      JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
     WHERE c.relkind IN ('v', 'm')
),
-- The types of the columns, each with those below its domains and arrays.
type (typid, below) AS (
    SELECT a.atttypid, a.atttypid
      FROM pg_attribute AS a
     WHERE a.attrelid = %(relation)s
       AND a.attnum > 0
       AND NOT a.attisdropped
    UNION
    SELECT y.typid, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END
      FROM type AS y
      JOIN pg_type AS t ON t.oid = y.below
     WHERE t.typtype = 'd'
        OR t.typcategory = 'A'
)
SELECT jsonb_build_object(
           'oid', c.oid::bigint,
           'owner_oid', c.relowner::bigint,
           'relkind', c.relkind,
           'owner', pg_get_userbyid(c.relowner),
           'row_security', c.relrowsecurity,
           'forced', c.relforcerowsecurity,
           'has_children', EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid),
           'has_parents', EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid),
           'foreign_parts', EXISTS (SELECT
                                      FROM part AS p
                                      JOIN pg_foreign_table AS f ON f.ftrelid = p.oid
                                     WHERE p.oid <> c.oid),
           'key', coalesce((SELECT jsonb_agg(a.attname ORDER BY k.position)
                              FROM pg_index AS x
                             CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (attnum, position)
                              JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
                             WHERE x.indrelid = c.oid
                               AND x.indisprimary
                               AND k.position <= x.indnkeyatts), '[]'),
           'definition', (SELECT md5(string_agg(concat(pg_get_viewdef(v.oid), r.reloptions), ' '
                                                   ORDER BY n.nspname, r.relname))
                            FROM viewed AS v
                            JOIN pg_class AS r ON r.oid = v.oid
                            JOIN pg_namespace AS n ON n.oid = r.relnamespace),
           'columns', coalesce((SELECT jsonb_agg(jsonb_build_object(
                                           'name', a.attname,
                                           'number', a.attnum,
                                           'type', format_type(a.atttypid, a.atttypmod),
                                           'labels', (SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder)
                                                        FROM type AS y
                                                        JOIN pg_enum AS e ON e.enumtypid = y.below
                                                       WHERE y.typid = a.atttypid),
                                           'nullable', NOT a.attnotnull) ORDER BY a.attnum)
                                  FROM pg_attribute AS a
                                 WHERE a.attrelid = c.oid
                                   AND a.attnum > 0
                                   AND NOT a.attisdropped), '[]'))
  FROM pg_class AS c
 WHERE c.oid = %(relation)s

-- name: unique_columns
-- The columns of every UNIQUE index of a table, including partial indexes and those of partitions.
-- An index on an expression counts for the columns of the expression.
WITH RECURSIVE part (oid) AS (
    SELECT %(relation)s::oid
    UNION
    SELECT i.inhrelid
      FROM part AS p
      JOIN pg_inherits AS i ON i.inhparent = p.oid
)
SELECT DISTINCT ARRAY(SELECT a.attname::text
                        FROM pg_attribute AS a
                       WHERE a.attrelid = x.indrelid
                         AND (a.attnum = ANY (x.indkey[0 : x.indnkeyatts - 1])
                              OR EXISTS (SELECT
                                           FROM regexp_matches(x.indexprs::text,
                                                               ':varattno (\d+)', 'g') AS v (found)
                                          WHERE v.found[1]::int = a.attnum))
                       ORDER BY a.attname) AS columns
  FROM part AS p
  JOIN pg_index AS x ON x.indrelid = p.oid
 WHERE x.indisunique
 ORDER BY columns

-- name: view_definition
-- The definition and the options of a view.
SELECT pg_get_viewdef(c.oid) || coalesce(array_to_string(c.reloptions, ','), '')
  FROM pg_class AS c
 WHERE c.oid = %s

-- name: view_options
-- The storage options of a view, among them security_barrier.
SELECT c.reloptions
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %s
   AND c.relname = %s
   AND c.relkind = 'v'

-- name: volatile_functions
-- The VOLATILE functions that reading a view calls. The catalogs record no dependency on built-in functions, so
-- the stored query tree is searched. A materialized view calls its functions only when it is refreshed.
WITH RECURSIVE viewed (oid) AS (
    SELECT c.oid
      FROM pg_class AS c
     WHERE c.oid = f.oid
       AND c.relkind = 'v'
    UNION
    SELECT c.oid
      FROM viewed AS v
      JOIN pg_rewrite AS w ON w.ev_class = v.oid AND w.ev_type = '1'
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
      JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
     WHERE c.relkind = 'v'
)
SELECT DISTINCT n.nspname, p.proname
  FROM viewed AS v
  JOIN pg_rewrite AS w ON w.ev_class = v.oid AND w.ev_type = '1'
 CROSS JOIN LATERAL regexp_matches(w.ev_action::text,
                                   ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS f (found)
  JOIN pg_proc AS p ON p.oid = f.found[1]::oid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.provolatile = 'v'
 ORDER BY 1, 2
