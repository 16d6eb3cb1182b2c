-- Return the share of wanted values in a published set; the planner inlines it, so it has no SET clause.
CREATE OR REPLACE FUNCTION dbanon.share(published anyarray, wanted anyelement)
RETURNS double precision
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT CASE
           WHEN wanted OPERATOR(pg_catalog.=) ANY (published)
           THEN 1::pg_catalog.float8 OPERATOR(pg_catalog./) pg_catalog.cardinality(published)
           ELSE 0 END
$function$;

COMMENT ON FUNCTION dbanon.share(anyarray, anyelement) IS
    'The share of a class that has the wanted value, if all values of the published set are equally likely.';

-- It counts elements, which the planner does not take in, so it sets a search path.
CREATE OR REPLACE FUNCTION dbanon.share(published text[], wanted text[])
RETURNS double precision
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(count(*) FILTER (WHERE p.value = ANY (wanted))::float8 / nullif(count(*), 0), 0)
      FROM unnest(published) AS p (value)
$function$;

COMMENT ON FUNCTION dbanon.share(text[], text[]) IS
    'The share of a class that has one of the wanted values, if all values of the published set are equally likely.';
