-- Prove the alpha of (alpha, k)-anonymity: no sensitive value takes more than alpha of a class.
CREATE OR REPLACE FUNCTION dbanon.check_alpha_k_anonymity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    alpha double precision
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
    IF NOT coalesce(check_alpha_k_anonymity.alpha > 0
                        AND check_alpha_k_anonymity.alpha <= 1, false) THEN
        RAISE EXCEPTION 'check_alpha_k_anonymity needs alpha in (0, 1]'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    each_class AS (
        SELECT class, sum(members) AS members,
               max(members)::double precision / sum(members) AS achieved
          FROM cells
         GROUP BY class
    )
    SELECT check_alpha_k_anonymity.alpha::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved > check_alpha_k_anonymity.alpha + 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved > check_alpha_k_anonymity.alpha + 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_alpha_k_anonymity(regclass, text[], text, double precision) IS
    'Compares the share of the most frequent sensitive value of every class with alpha; k is checked apart.';
