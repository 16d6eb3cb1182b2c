-- Count the rows of each class that hold each sensitive value, for the checks of distributions.
CREATE OR REPLACE FUNCTION dbanon.tally(
    relation regclass,
    quasi_identifiers text[],
    sensitive text
)
RETURNS TABLE (
    class bigint,
    value bigint,
    label text,
    number double precision,
    members bigint
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    class_key text;
    class_columns text;
    class_aliases text;
    target text;
    value_order text;
    value_number text;
    value_label text;
BEGIN
    IF relation IS NULL OR sensitive IS NULL OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION 'a check needs a relation, at least one quasi-identifier and a sensitive column'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname)
      INTO target
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = relation;

    -- Texts are ordered by their bytes, whatever the collation. A cast from a type of somebody's
    -- own would run whatever function its owner made it; format() knows the output function only.
    WITH RECURSIVE base (typid, collation_id) AS (
        SELECT a.atttypid, a.attcollation
          FROM pg_attribute AS a
         WHERE a.attrelid = relation
           AND a.attname = sensitive
           AND a.attnum > 0
           AND NOT a.attisdropped
        UNION ALL
        SELECT t.typbasetype, b.collation_id
          FROM base AS b
          JOIN pg_type AS t ON t.oid = b.typid
         WHERE t.typtype = 'd'
    )
    SELECT CASE WHEN b.collation_id <> 0 THEN 'v.s COLLATE "C"'
                WHEN t.typtype = 'e' THEN 'format(''%s'', v.s) COLLATE "C"'
                ELSE 'v.s' END,
           CASE WHEN t.typname IN ('int2', 'int4', 'int8', 'numeric', 'float4', 'float8')
                 AND t.typnamespace = 'pg_catalog'::regnamespace
                THEN 'v.s::text::double precision'
                ELSE 'NULL::double precision' END,
           dbanon.equal_text(b.typid, 'v.s')
      INTO value_order, value_number, value_label
      FROM base AS b
      JOIN pg_type AS t ON t.oid = b.typid AND t.typtype <> 'd';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the relation has no column %', quote_ident(sensitive)
            USING ERRCODE = 'undefined_column';
    END IF;

    SELECT string_agg(format('r.%I', q.name), ', ' ORDER BY q.position),
           string_agg(format('r.%I AS q%s', q.name, q.position), ', ' ORDER BY q.position),
           string_agg(format('v.q%s', q.position), ', ' ORDER BY q.position)
      INTO class_key, class_columns, class_aliases
      FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, position);

    RETURN QUERY EXECUTE format(
        'SELECT dense_rank() OVER (ORDER BY %1$s),'
        '       dense_rank() OVER (ORDER BY v.s IS NULL, %6$s),'
        '       %7$s,'
        '       %8$s,'
        '       v.members'
        '  FROM (SELECT %2$s, r.%5$I AS s, count(*) AS members'
        '          FROM %3$s AS r'
        '         GROUP BY %4$s, r.%5$I) AS v',
        class_aliases, class_columns, target, class_key, sensitive,
        value_order, value_label, value_number
    );
END
$function$;

COMMENT ON FUNCTION dbanon.tally(regclass, text[], text) IS
    'Counts the rows of each class of a relation by sensitive value; classes and values are numbered in their order.';
