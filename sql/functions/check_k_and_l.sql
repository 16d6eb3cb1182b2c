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
#variable_conflict use_column
BEGIN
    IF relation IS NULL OR k IS NULL OR k < 1 OR sensitive IS NULL OR l IS NULL OR l < 1
       OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION
            'check_k_and_l needs a relation, at least one quasi-identifier, k >= 1, a sensitive column and l >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    RETURN QUERY
    SELECT m.model,
           m.required,
           m.achieved,
           t.classes,
           m.failing,
           t.members,
           CASE WHEN t.classes = 0 THEN 'not checked'
                WHEN m.achieved >= m.required THEN 'passed'
                ELSE 'failed' END
      FROM (SELECT count(*) AS classes,
                   coalesce(sum(c.members), 0)::bigint AS members,
                   min(c.members) AS fewest_members,
                   count(*) FILTER (WHERE c.members < k) AS too_small,
                   min(c.distinct_values) AS fewest_values,
                   count(*) FILTER (WHERE c.distinct_values < l) AS too_uniform
              FROM dbanon.classes(relation, quasi_identifiers, ARRAY[sensitive]) AS c) AS t
     CROSS JOIN LATERAL (VALUES
               (1, 'k-anonymity', k, t.fewest_members, t.too_small),
               (2, 'l-diversity', l, t.fewest_values, t.too_uniform))
           AS m (position, model, required, achieved, failing)
     ORDER BY m.position;
END
$function$;

COMMENT ON FUNCTION dbanon.check_k_and_l(regclass, text[], integer, text, integer) IS
    'Counts the rows and the distinct sensitive values of every equivalence class of a relation in one scan.';
