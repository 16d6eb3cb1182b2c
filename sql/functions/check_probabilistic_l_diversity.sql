-- Prove probabilistic l-diversity: no sensitive value takes more than 1/l of a class.
CREATE OR REPLACE FUNCTION dbanon.check_probabilistic_l_diversity(
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
    IF NOT coalesce(check_probabilistic_l_diversity.l >= 1
                        AND check_probabilistic_l_diversity.l < 'Infinity', false) THEN
        RAISE EXCEPTION 'check_probabilistic_l_diversity needs l >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    each_class AS (
        SELECT class, sum(members) AS members,
               sum(members)::double precision / max(members) AS achieved
          FROM cells
         GROUP BY class
    )
    SELECT check_probabilistic_l_diversity.l::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_probabilistic_l_diversity.l - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved < check_probabilistic_l_diversity.l - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_probabilistic_l_diversity(regclass, text[], text, double precision) IS
    'Compares the rows of every class with those of its most frequent sensitive value.';
