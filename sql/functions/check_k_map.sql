-- Prove k-map: every published row may be that of at least k rows of a population.
CREATE OR REPLACE FUNCTION dbanon.check_k_map(
    relation regclass,
    quasi_identifiers text[],
    population regclass,
    k integer,
    trees jsonb DEFAULT '{}'
)
RETURNS TABLE (
    required double precision,
    achieved double precision,
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
    IF NOT coalesce(check_k_map.k >= 1, false) THEN
        RAISE EXCEPTION 'check_k_map needs k >= 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- What the classes around take of a region is missing in it, and they take no more than they
    -- have rows, nor more than they share; its own rows are left to every class.
    RETURN QUERY
    WITH each_class AS (
        SELECT p.members,
               least(p.covered, greatest(p.members, p.alone, p.covered - p.taken)) AS achieved
          FROM dbanon.presence(relation, quasi_identifiers, population, trees) AS p
         WHERE p.class IS NOT NULL
    )
    SELECT check_k_map.k::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_k_map.k),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN min(e.achieved) >= check_k_map.k THEN 'passed'
                ELSE 'failed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_k_map(regclass, text[], regclass, integer, jsonb) IS
    'Counts the rows of a population that a row of each class may be and compares the least with k.';
