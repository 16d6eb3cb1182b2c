-- Prove t-closeness: the sensitive values of every class are distributed within t of the whole relation.
CREATE OR REPLACE FUNCTION dbanon.check_t_closeness(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    t double precision,
    distance text DEFAULT 'equal',
    tree jsonb DEFAULT NULL
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
    IF NOT coalesce(check_t_closeness.t >= 0 AND check_t_closeness.t <= 1, false) THEN
        RAISE EXCEPTION 'check_t_closeness needs t in [0, 1]'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    SELECT check_t_closeness.t,
           max(d.achieved),
           count(*),
           count(*) FILTER (WHERE d.achieved > check_t_closeness.t + 1e-9),
           coalesce(sum(d.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(d.achieved > check_t_closeness.t + 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM dbanon.distances(relation, quasi_identifiers, sensitive, check_t_closeness.distance,
                            check_t_closeness.tree, 0, 0) AS d;
END
$function$;

COMMENT ON FUNCTION dbanon.check_t_closeness(
    regclass, text[], text, double precision, text, jsonb
) IS 'Finds the earth mover''s distance of every class from the whole relation and compares the largest with t.';
