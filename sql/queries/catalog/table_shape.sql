-- What a policy depends on in a table, as a document; names and types as no search path changes them.
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
