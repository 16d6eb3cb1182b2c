-- Test if all possible values of a class are wanted; the planner inlines these, so they have no SET clause.
CREATE OR REPLACE FUNCTION dbanon.at_least(published anyrange, wanted anyrange)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT (published OPERATOR(pg_catalog.<@) wanted)::pg_catalog.int4
$function$;

COMMENT ON FUNCTION dbanon.at_least(anyrange, anyrange) IS
    '1 if a published range lies within the wanted one, else 0: their sum is the least count of a condition.';

CREATE OR REPLACE FUNCTION dbanon.at_least(published anyarray, wanted anyarray)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    SELECT (published OPERATOR(pg_catalog.<@) wanted)::pg_catalog.int4
$function$;

COMMENT ON FUNCTION dbanon.at_least(anyarray, anyarray) IS
    '1 if all values of a published set are wanted, else 0: their sum is the least count of a condition.';
