-- Count which rows of a population each class of a relation covers, and those that no class does.
CREATE OR REPLACE FUNCTION dbanon.presence(
    relation regclass,
    quasi_identifiers text[],
    population regclass,
    trees jsonb
)
RETURNS TABLE (
    class bigint,
    members bigint,
    covered bigint,
    alone bigint,
    taken bigint
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO, YMD'
SET extra_float_digits = 1
AS $function$
DECLARE
    shown text;
    people text;
    class_columns text;
    class_key text;
    people_columns text;
    people_key text;
    people_labels text;
    covers text;
BEGIN
    IF relation IS NULL OR population IS NULL OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION 'a check needs a relation, at least one quasi-identifier and a population'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname) INTO shown
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation;
    SELECT format('%I.%I', n.nspname, c.relname) INTO people
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = population;

    -- The region of a class by the type in which a column is published: a range holds the values
    -- between its bounds, an array its elements, and a text is a value, or a label of the column's
    -- tree, {"root": "*", "labels": {"flu": ["flu", "acute"]}}. The root and the range without
    -- bounds say nothing, so that NULL is one of what they may stand for; NULL is nothing else.
    WITH RECURSIVE base (position, name, typid) AS (
        SELECT q.position, q.name, a.atttypid
          FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, position)
          LEFT JOIN pg_attribute AS a
            ON a.attrelid = population AND a.attname = q.name AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT b.position, b.name, t.typbasetype
          FROM base AS b
          JOIN pg_type AS t ON t.oid = b.typid
         WHERE t.typtype = 'd'
    ),
    columns AS (
        SELECT b.position, b.name,
               CASE WHEN pt.oid IN ('float4'::regtype, 'float8'::regtype)
                    THEN format('trim_scale(p.%I::text::numeric)::text', b.name)
                    ELSE dbanon.equal_text(pt.oid, format('p.%I', b.name)) END AS spelled,
               CASE WHEN r.rngsubtype IS NOT NULL THEN format_type(r.rngsubtype, NULL)
                    WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN format_type(t.typelem, NULL)
                    ELSE 'text COLLATE "C"' END AS compared,
               CASE WHEN r.rngsubtype IS NOT NULL
                    THEN 'CASE WHEN c.q%1$s IS NULL THEN p.v%1$s IS NULL'
                         ' ELSE lower_inf(c.q%1$s) AND upper_inf(c.q%1$s)'
                         ' OR coalesce(c.q%1$s @> p.v%1$s, false) END'
                    WHEN t.typelem <> 0 AND t.typcategory = 'A'
                    THEN CASE WHEN t.typelem = 'text'::regtype
                              THEN 'array_position(c.q%1$s, p.v%1$s COLLATE "C") IS NOT NULL'
                              ELSE 'array_position(c.q%1$s, p.v%1$s) IS NOT NULL' END
                    WHEN trees ? b.name
                    THEN 'CASE WHEN c.q%1$s IS NULL THEN p.v%1$s IS NULL'
                         ' WHEN c.q%1$s = $1 #>> ARRAY[%2$L, ''root''] THEN true'
                         ' ELSE coalesce(p.l%1$s ? c.q%1$s, false) END'
                    ELSE 'CASE WHEN c.q%1$s IS NULL THEN p.v%1$s IS NULL'
                         ' ELSE c.q%1$s = ''*'' OR coalesce(c.q%1$s = p.v%1$s COLLATE "C", false) END'
                    END AS region
          FROM base AS b
          JOIN pg_type AS pt ON pt.oid = b.typid AND pt.typtype <> 'd'
          JOIN pg_attribute AS a
            ON a.attrelid = relation AND a.attname = b.name AND a.attnum > 0 AND NOT a.attisdropped
          JOIN pg_type AS t ON t.oid = a.atttypid
          LEFT JOIN pg_range AS r ON r.rngtypid = t.oid
    )
    SELECT string_agg(format('s.%I AS q%s', k.name, k.position), ', ' ORDER BY k.position),
           string_agg(format('s.%I', k.name), ', ' ORDER BY k.position),
           string_agg(format('(%s)::%s AS v%s', k.spelled, k.compared, k.position), ', '
                      ORDER BY k.position),
           string_agg(format('o.v%s', k.position), ', ' ORDER BY k.position),
           string_agg(CASE WHEN trees ? k.name
                           THEN format(', $1 #> ARRAY[%1$L, ''labels'', o.v%2$s] AS l%2$s', k.name, k.position)
                           ELSE '' END, '' ORDER BY k.position),
           string_agg(format(k.region, k.position, k.name), ' AND ' ORDER BY k.position)
      INTO class_columns, class_key, people_columns, people_key, people_labels, covers
      FROM columns AS k
    HAVING count(*) = cardinality(quasi_identifiers);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the relation or the population lacks a quasi-identifier'
            USING ERRCODE = 'undefined_column';
    END IF;

    -- Rows of the population are counted by the set of classes that cover them, which are few.
    RETURN QUERY EXECUTE format(
        'WITH classes AS MATERIALIZED ('
        '  SELECT row_number() OVER () AS class, count(*) AS members, %1$s FROM %2$s AS s GROUP BY %3$s'
        '), people AS MATERIALIZED ('
        '  SELECT row_number() OVER () AS id, count(*) AS persons, %5$s%8$s'
        '    FROM (SELECT %4$s FROM %6$s AS p) AS o GROUP BY %5$s'
        '), covering AS MATERIALIZED ('
        '  SELECT p.id, p.persons, array_agg(c.class ORDER BY c.class) AS who'
        '    FROM people AS p JOIN classes AS c ON %7$s GROUP BY p.id, p.persons'
        '), sets AS MATERIALIZED ('
        '  SELECT v.who, sum(v.persons) AS persons FROM covering AS v GROUP BY v.who'
        '), counted AS ('
        '  SELECT u.class, sum(s.persons) AS covered,'
        '         sum(s.persons) FILTER (WHERE cardinality(s.who) = 1) AS alone'
        '    FROM sets AS s CROSS JOIN unnest(s.who) AS u (class) GROUP BY u.class'
        '), near AS ('
        '  SELECT DISTINCT a.class, b.class AS other'
        '    FROM sets AS s CROSS JOIN unnest(s.who) AS a (class) CROSS JOIN unnest(s.who) AS b (class)'
        '   WHERE a.class <> b.class'
        '), around AS ('
        '  SELECT n.class, sum(c.members) AS taken'
        '    FROM near AS n JOIN classes AS c ON c.class = n.other GROUP BY n.class'
        ') '
        'SELECT c.class, c.members, coalesce(k.covered, 0)::bigint, coalesce(k.alone, 0)::bigint,'
        '       coalesce(a.taken, 0)::bigint'
        '  FROM classes AS c LEFT JOIN counted AS k ON k.class = c.class'
        '  LEFT JOIN around AS a ON a.class = c.class'
        ' UNION ALL '
        'SELECT NULL, 0, coalesce(sum(p.persons), 0)::bigint, 0, 0'
        '  FROM people AS p WHERE NOT EXISTS (SELECT FROM covering AS v WHERE v.id = p.id)',
        class_columns, shown, class_key, people_columns, people_key, people, covers,
        people_labels
    ) USING trees;
END
$function$;

COMMENT ON FUNCTION dbanon.presence(regclass, text[], regclass, jsonb) IS
    'For each class its rows, the rows of the population in its region, those in no other region, and the rows of the classes it shares some with; class NULL: what no class covers.';
