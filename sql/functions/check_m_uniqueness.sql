-- Prove m-uniqueness: every class has at least m rows, all with different sensitive values.
CREATE OR REPLACE FUNCTION dbanon.check_m_uniqueness(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    m integer
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
    IF NOT coalesce(check_m_uniqueness.m >= 1, false) THEN
        RAISE EXCEPTION 'check_m_uniqueness needs m >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    each_class AS (
        SELECT class, sum(members) AS members,
               CASE WHEN max(members) = 1 THEN count(*) ELSE 0 END AS achieved
          FROM cells
         GROUP BY class
    )
    SELECT check_m_uniqueness.m::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_m_uniqueness.m - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved < check_m_uniqueness.m - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_m_uniqueness(regclass, text[], text, integer) IS
    'Counts the rows of every class: 0 where a sensitive value repeats.';
