-- Prove (n, t)-closeness: every class is within t of a set of n rows around it, or of all rows.
CREATE OR REPLACE FUNCTION dbanon.check_n_t_closeness(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    n integer,
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
    IF NOT coalesce(check_n_t_closeness.n >= 1
                    AND check_n_t_closeness.t >= 0
                    AND check_n_t_closeness.t <= 1, false) THEN
        RAISE EXCEPTION 'check_n_t_closeness needs n >= 1 and t in [0, 1]'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH sizes AS (
        SELECT class, sum(members) AS members
          FROM dbanon.tally(relation, quasi_identifiers, sensitive)
         GROUP BY class
    ),
    nearest AS (
        SELECT d.class, min(d.achieved) AS achieved
          FROM generate_series(0, cardinality(quasi_identifiers)) AS p (prefix)
         CROSS JOIN LATERAL dbanon.distances(relation, quasi_identifiers, sensitive,
                                             check_n_t_closeness.distance,
                                             check_n_t_closeness.tree, p.prefix,
                                             check_n_t_closeness.n) AS d
         GROUP BY d.class
    ),
    each_class AS (
        SELECT s.members, coalesce(e.achieved, 'Infinity') AS achieved
          FROM sizes AS s
          LEFT JOIN nearest AS e ON e.class = s.class
    )
    SELECT check_n_t_closeness.t,
           max(e.achieved),
           count(*),
           count(*) FILTER (WHERE e.achieved > check_n_t_closeness.t + 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved > check_n_t_closeness.t + 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_n_t_closeness(
    regclass, text[], text, integer, double precision, text, jsonb
) IS 'Finds the distance of every class from the nearest set of n rows that agree with it in the first quasi-identifiers.';
