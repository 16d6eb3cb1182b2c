-- Prove distinct l-diversity: every equivalence class holds at least l values of the sensitive column.
CREATE OR REPLACE FUNCTION dbanon.check_l_diversity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    l integer
)
RETURNS TABLE (
    required integer,
    achieved bigint,
    classes bigint,
    failing_classes bigint,
    row_count bigint,
    verdict text
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
BEGIN
    IF relation IS NULL OR sensitive IS NULL OR l IS NULL OR l < 1
       OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION
            'check_l_diversity needs a relation, at least one quasi-identifier, a sensitive column and l >= 1'
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

    -- Grouping counts NULL as a value, and hashes where count(DISTINCT) would sort every class.
    RETURN QUERY EXECUTE format(
        'SELECT $1,'
        '       min(c.diversity),'
        '       count(*),'
        '       count(*) FILTER (WHERE c.diversity < $1),'
        '       coalesce(sum(c.members), 0)::bigint,'
        '       CASE WHEN count(*) = 0 THEN ''not checked'''
        '            WHEN min(c.diversity) >= $1 THEN ''passed'''
        '            ELSE ''failed'' END'
        '  FROM (SELECT count(*) AS diversity, sum(v.members) AS members'
        '          FROM (SELECT %1$s, count(*) AS members'
        '                  FROM %2$s AS r'
        '                 GROUP BY %3$s, r.%4$I) AS v'
        '         GROUP BY %5$s) AS c',
        class_columns, target, class_key, sensitive, class_aliases
    ) USING l;
END
$function$;

COMMENT ON FUNCTION dbanon.check_l_diversity(regclass, text[], text, integer) IS
    'Counts the distinct sensitive values of every equivalence class of a relation and compares the least with l.';
