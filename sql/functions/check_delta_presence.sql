-- Prove delta-presence: of the population in every class a share from dmin to dmax is published.
CREATE OR REPLACE FUNCTION dbanon.check_delta_presence(
    relation regclass,
    quasi_identifiers text[],
    population regclass,
    dmax double precision,
    dmin double precision DEFAULT 0,
    trees jsonb DEFAULT '{}'
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
    IF NOT coalesce(check_delta_presence.dmin >= 0 AND check_delta_presence.dmin <= check_delta_presence.dmax
                        AND check_delta_presence.dmax > 0 AND check_delta_presence.dmax <= 1, false) THEN
        RAISE EXCEPTION 'check_delta_presence needs 0 <= dmin <= dmax, and dmax in (0, 1]'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A class that shares rows of the population with another has no share of its own: infinite.
    -- What no class covers is one more class, with a share of 0; it fails when dmin is above that.
    RETURN QUERY
    WITH each_class AS (
        SELECT p.class, p.members,
               CASE WHEN p.class IS NULL THEN 0
                    WHEN p.covered = 0 OR p.alone < p.covered THEN 'Infinity'
                    ELSE p.members::double precision / p.covered END AS share
          FROM dbanon.presence(relation, quasi_identifiers, population, trees) AS p
         WHERE p.class IS NOT NULL OR p.covered > 0
    ),
    judged AS (
        SELECT count(e.class) AS classes,
               coalesce(sum(e.members), 0)::bigint AS members,
               min(e.share) AS least, max(e.share) AS most,
               count(*) FILTER (WHERE e.share > check_delta_presence.dmax + 1e-9
                                   OR e.share < check_delta_presence.dmin - 1e-9) AS failing,
               coalesce(bool_or(e.share > check_delta_presence.dmax + 1e-9), false) AS above
          FROM each_class AS e
    )
    SELECT CASE WHEN j.failing > 0 AND NOT j.above THEN check_delta_presence.dmin
                ELSE check_delta_presence.dmax END::double precision,
           CASE WHEN j.classes = 0 THEN NULL
                WHEN j.failing > 0 AND NOT j.above THEN j.least
                ELSE j.most END::double precision,
           j.classes,
           CASE WHEN j.classes = 0 THEN 0 ELSE j.failing END,
           j.members,
           CASE WHEN j.classes = 0 THEN 'not checked'
                WHEN j.failing > 0 THEN 'failed'
                ELSE 'passed' END
      FROM judged AS j;
END
$function$;

COMMENT ON FUNCTION dbanon.check_delta_presence(regclass, text[], regclass, double precision, double precision, jsonb) IS
    'Compares the share of the population that is published in every class with dmin and dmax; classes may share nobody.';
