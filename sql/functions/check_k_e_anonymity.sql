-- Prove (k, e)-anonymity: every class holds k different numbers whose range is at least e.
CREATE OR REPLACE FUNCTION dbanon.check_k_e_anonymity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    k integer,
    e double precision
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
    IF NOT coalesce(check_k_e_anonymity.k >= 1
                        AND check_k_e_anonymity.e >= 0
                        AND check_k_e_anonymity.e < 'Infinity', false) THEN
        RAISE EXCEPTION 'check_k_e_anonymity needs k >= 1 and e >= 0'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    each_class AS (
        SELECT class, sum(members) AS members,
               CASE WHEN count(number) < check_k_e_anonymity.k THEN -1 ELSE max(number) - min(number) END AS achieved
          FROM (SELECT class, members, nullif(number, 'NaN') AS number FROM cells) AS c
         GROUP BY class
    )
    SELECT check_k_e_anonymity.e::double precision,
           min(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved < check_k_e_anonymity.e - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved < check_k_e_anonymity.e - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_k_e_anonymity(regclass, text[], text, integer, double precision) IS
    'Finds the range of the sensitive numbers of every class: -1 with fewer than k of them.';
