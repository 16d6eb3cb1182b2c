-- Return the middle of a published range; the planner takes it in, so it sets nothing.
CREATE OR REPLACE FUNCTION dbanon.middle(published {range})
RETURNS {value}
LANGUAGE sql
{volatility}
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT CASE WHEN pg_catalog.isfinite(pg_catalog.lower(published))
                 AND pg_catalog.isfinite(pg_catalog.upper(published))
                THEN pg_catalog.lower(published)
                     OPERATOR(pg_catalog.+)
                     ((pg_catalog.upper(published)
                       OPERATOR(pg_catalog.-) pg_catalog.lower(published)
                       OPERATOR(pg_catalog.-) {step}) OPERATOR(pg_catalog./) 2) END
$function$;

COMMENT ON FUNCTION dbanon.middle({range}) IS
    'The middle of a published range; NULL if an end of it is open or infinite. For plots: an average of middles is biased if values are skewed, so publish means with the recoding mean.';
