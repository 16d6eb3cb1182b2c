-- Prove entropy l-diversity: the entropy of the sensitive values of every class is at least ln l.
CREATE OR REPLACE FUNCTION dbanon.check_entropy_l_diversity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    l double precision
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
    IF NOT coalesce(check_entropy_l_diversity.l >= 1
                        AND check_entropy_l_diversity.l < 'Infinity', false) THEN
        RAISE EXCEPTION 'check_entropy_l_diversity needs l >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    sizes AS (
        SELECT class, sum(members)::double precision AS members, count(*) AS distinct_values
          FROM cells
         GROUP BY class
    ),
    each_class AS (
        SELECT c.class, max(s.members) AS members,
               exp(-sum(c.members / s.members * ln(c.members / s.members))) AS achieved
          FROM cells AS c
          JOIN sizes AS s ON s.class = c.class
         GROUP BY c.class
    )
    SELECT check_entropy_l_diversity.l::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_entropy_l_diversity.l - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved < check_entropy_l_diversity.l - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_entropy_l_diversity(regclass, text[], text, double precision) IS
    'Compares exp(entropy) of the sensitive values of every class with l.';
