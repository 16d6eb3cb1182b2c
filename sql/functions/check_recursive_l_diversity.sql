-- Prove recursive (c, l)-diversity: the top count of a class is below c times the sum from the l-th on.
CREATE OR REPLACE FUNCTION dbanon.check_recursive_l_diversity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    c double precision,
    l integer
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
    IF NOT coalesce(check_recursive_l_diversity.c > 0
                        AND check_recursive_l_diversity.c < 'Infinity'
                        AND check_recursive_l_diversity.l >= 1, false) THEN
        RAISE EXCEPTION 'check_recursive_l_diversity needs c > 0 and l >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    ranked AS (
        SELECT class, label, members,
               row_number() OVER (PARTITION BY class ORDER BY members DESC, value) AS place
          FROM cells
    ),
    each_class AS (
        SELECT class, sum(members) AS members,
               CASE WHEN check_recursive_l_diversity.l = 1 THEN 0
                    ELSE coalesce(max(members) / sum(members::double precision)
                                                 FILTER (WHERE place >= check_recursive_l_diversity.l), 'Infinity')
                END AS achieved
          FROM ranked
         GROUP BY class
    )
    SELECT check_recursive_l_diversity.c::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved >= check_recursive_l_diversity.c - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved >= check_recursive_l_diversity.c - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_recursive_l_diversity(regclass, text[], text, double precision, integer) IS
    'Finds the c that every class stays below: infinite with fewer than l sensitive values.';
