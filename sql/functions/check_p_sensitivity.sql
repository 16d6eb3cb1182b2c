-- Prove p-sensitivity: every class holds at least p values of the sensitive column.
CREATE OR REPLACE FUNCTION dbanon.check_p_sensitivity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    p integer
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
    IF NOT coalesce(check_p_sensitivity.p >= 1, false) THEN
        RAISE EXCEPTION 'check_p_sensitivity needs p >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    each_class AS (
        SELECT class, sum(members) AS members, count(*) AS achieved
          FROM cells
         GROUP BY class
    )
    SELECT check_p_sensitivity.p::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_p_sensitivity.p - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved < check_p_sensitivity.p - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_p_sensitivity(regclass, text[], text, integer) IS
    'Counts the distinct sensitive values of every class and compares the least with p; k is checked apart.';
