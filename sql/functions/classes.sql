-- Count the rows of each class of a relation, and the distinct values of other columns in it.
CREATE OR REPLACE FUNCTION dbanon.classes(
    relation regclass,
    quasi_identifiers text[],
    others text[]
)
RETURNS TABLE (
    class bigint,
    members bigint,
    distinct_values bigint
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
    value_key text;
    target text;
BEGIN
    IF relation IS NULL OR coalesce(cardinality(quasi_identifiers), 0) = 0
       OR others IS NULL OR array_position(others, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a check needs a relation, at least one quasi-identifier and the names of columns'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname)
      INTO target
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = relation;

    SELECT string_agg(format('r.%I', q.name), ', ' ORDER BY q.position),
           string_agg(format('r.%I AS q%s', q.name, q.position), ', ' ORDER BY q.position),
           string_agg(format('v.q%s', q.position), ', ' ORDER BY q.position)
      INTO class_key, class_columns, class_aliases
      FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, position);
    SELECT string_agg(format('r.%I', o.name), ', ' ORDER BY o.position)
      INTO value_key
      FROM unnest(others) WITH ORDINALITY AS o (name, position);

    -- Without other columns the rows of a class are of one value.
    IF value_key IS NULL THEN
        RETURN QUERY EXECUTE format(
            'SELECT row_number() OVER (), count(*), 1::bigint FROM %s AS r GROUP BY %s',
            target, class_key
        );
        RETURN;
    END IF;

    -- Grouping counts NULL as a value, and hashes where count(DISTINCT) would sort every class.
    RETURN QUERY EXECUTE format(
        'SELECT row_number() OVER (), sum(v.members)::bigint, count(*)'
        '  FROM (SELECT %1$s, count(*) AS members'
        '          FROM %2$s AS r'
        '         GROUP BY %3$s, %4$s) AS v'
        ' GROUP BY %5$s',
        class_columns, target, class_key, value_key, class_aliases
    );
END
$function$;

COMMENT ON FUNCTION dbanon.classes(regclass, text[], text[]) IS
    'Counts the rows of each class of a relation, and the distinct values of other columns in it.';
