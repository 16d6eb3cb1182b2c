-- Prove beta-likeness: no sensitive value is relatively more frequent in a class by more than beta.
CREATE OR REPLACE FUNCTION dbanon.check_beta_likeness(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    beta double precision,
    kind text DEFAULT 'basic'
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
    IF NOT coalesce(check_beta_likeness.beta > 0
                        AND check_beta_likeness.beta < 'Infinity'
                        AND check_beta_likeness.kind IN ('basic', 'enhanced'), false) THEN
        RAISE EXCEPTION 'check_beta_likeness needs beta > 0 and a kind: basic or enhanced'
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
               max(CASE WHEN c.members / s.members <= w.share THEN 0
                        WHEN check_beta_likeness.kind = 'basic' THEN (c.members / s.members - w.share) / w.share
                        ELSE (c.members / s.members - w.share) / w.share
                             * check_beta_likeness.beta / least(check_beta_likeness.beta, -ln(w.share)) END) AS achieved
          FROM cells AS c
          JOIN sizes AS s ON s.class = c.class
          JOIN whole AS w ON w.value = c.value
         GROUP BY c.class
    )
    SELECT check_beta_likeness.beta::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved > check_beta_likeness.beta + 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved > check_beta_likeness.beta + 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_beta_likeness(regclass, text[], text, double precision, text) IS
    'Finds the largest relative gain of a sensitive value in every class; enhanced scales it by its own bound.';
