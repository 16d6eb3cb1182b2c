-- Return the middle of a published range; the planner takes it in, so it sets nothing.
CREATE OR REPLACE FUNCTION dbanon.middle(published {range})
RETURNS double precision
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT (pg_catalog.float8(pg_catalog.lower(published))
            OPERATOR(pg_catalog.+) pg_catalog.float8(pg_catalog.upper(published))
            OPERATOR(pg_catalog.-) {step}) OPERATOR(pg_catalog./) 2
$function$;

COMMENT ON FUNCTION dbanon.middle({range}) IS
    'The middle of a published range; NULL if an end of it is open. For plots: an average of middles is biased if values are skewed, so publish means with the recoding mean.';
