-- Test if a class may have wanted values; the planner inlines these, so they have no SET clause.
CREATE OR REPLACE FUNCTION dbanon.at_most(published anyrange, wanted anyrange)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT (published OPERATOR(pg_catalog.&&) wanted)::pg_catalog.int4
$function$;

COMMENT ON FUNCTION dbanon.at_most(anyrange, anyrange) IS
    '1 if a published range meets the wanted one, else 0: their sum is the greatest count of a condition.';

CREATE OR REPLACE FUNCTION dbanon.at_most(published anyarray, wanted anyarray)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT (published OPERATOR(pg_catalog.&&) wanted)::pg_catalog.int4
$function$;

COMMENT ON FUNCTION dbanon.at_most(anyarray, anyarray) IS
    '1 if a published set has a wanted value, else 0: their sum is the greatest count of a condition.';
