-- Prove delta-disclosure privacy: the share of every value is within a factor of exp(delta) everywhere.
CREATE OR REPLACE FUNCTION dbanon.check_delta_disclosure(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    delta double precision
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
    IF NOT coalesce(check_delta_disclosure.delta > 0
                        AND check_delta_disclosure.delta < 'Infinity', false) THEN
        RAISE EXCEPTION 'check_delta_disclosure needs delta > 0'
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
    whole AS (
        SELECT value, sum(members) / sum(sum(members)) OVER () AS share
          FROM (SELECT value, members::double precision FROM cells) AS c
         GROUP BY value
    ),
    each_class AS (
        SELECT c.class, max(s.members) AS members,
               CASE WHEN count(*) < (SELECT count(*) FROM whole) THEN 'Infinity'
                    ELSE max(abs(ln(c.members / s.members / w.share))) END AS achieved
          FROM cells AS c
          JOIN sizes AS s ON s.class = c.class
          JOIN whole AS w ON w.value = c.value
         GROUP BY c.class
    )
    SELECT check_delta_disclosure.delta::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved >= check_delta_disclosure.delta - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved >= check_delta_disclosure.delta - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_delta_disclosure(regclass, text[], text, double precision) IS
    'Finds the largest logarithm of a share over that in the relation: infinite where a value is missing.';
