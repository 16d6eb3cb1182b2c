-- Prove k-anonymity and distinct l-diversity of one sensitive column in a single scan, a row for each.
CREATE OR REPLACE FUNCTION dbanon.check_k_and_l(
    relation regclass,
    quasi_identifiers text[],
    k integer,
    sensitive text,
    l integer
)
RETURNS TABLE (
    model text,
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
    IF relation IS NULL OR k IS NULL OR k < 1 OR sensitive IS NULL OR l IS NULL OR l < 1
       OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION
            'check_k_and_l needs a relation, at least one quasi-identifier, k >= 1, a sensitive column and l >= 1'
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

    -- The same grouping as in check_l_diversity: each class keeps its rows and its distinct values.
    RETURN QUERY EXECUTE format(
        'SELECT m.model,'
        '       m.required,'
        '       m.achieved,'
        '       t.classes,'
        '       m.failing,'
        '       t.members,'
        '       CASE WHEN t.classes = 0 THEN ''not checked'''
        '            WHEN m.achieved >= m.required THEN ''passed'''
        '            ELSE ''failed'' END'
        '  FROM (SELECT count(*) AS classes,'
        '               coalesce(sum(c.members), 0)::bigint AS members,'
        '               min(c.members)::bigint AS fewest_members,'
        '               count(*) FILTER (WHERE c.members < $1) AS too_small,'
        '               min(c.diversity) AS fewest_values,'
        '               count(*) FILTER (WHERE c.diversity < $2) AS too_uniform'
        '          FROM (SELECT count(*) AS diversity, sum(v.members) AS members'
        '                  FROM (SELECT %1$s, count(*) AS members'
        '                          FROM %2$s AS r'
        '                         GROUP BY %3$s, r.%4$I) AS v'
        '                 GROUP BY %5$s) AS c) AS t'
        ' CROSS JOIN LATERAL (VALUES (1, ''k-anonymity'', $1, t.fewest_members, t.too_small),'
        '                            (2, ''l-diversity'', $2, t.fewest_values, t.too_uniform))'
        '         AS m (position, model, required, achieved, failing)'
        ' ORDER BY m.position',
        class_columns, target, class_key, sensitive, class_aliases
    ) USING k, l;
END
$function$;

COMMENT ON FUNCTION dbanon.check_k_and_l(regclass, text[], integer, text, integer) IS
    'Counts the rows and the distinct sensitive values of every equivalence class of a relation in one scan.';
