-- Functions with which the planner estimates conditions on published ranges.

-- name: create_middle_of_numbers
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

-- name: create_middle_of_times
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

-- name: create_share
-- Return the share of wanted values in a published range; the planner inlines it, so it has no SET clause.
CREATE OR REPLACE FUNCTION dbanon.share(published {range}, wanted {range})
RETURNS double precision
LANGUAGE sql
{volatility}
PARALLEL SAFE
SECURITY INVOKER
AS $function$
    -- An open end has no bound, which LEAST and GREATEST leave out; of an infinite one nothing is known.
    SELECT CASE
           WHEN published OPERATOR(pg_catalog.<@) wanted THEN 1
           WHEN published OPERATOR(pg_catalog.&&) wanted
           THEN nullif(
                    ({number}({unit}LEAST(pg_catalog.upper(published), pg_catalog.upper(wanted)))
                     OPERATOR(pg_catalog.-)
                     {number}({unit}GREATEST(pg_catalog.lower(published), pg_catalog.lower(wanted))))
                    OPERATOR(pg_catalog./)
                    nullif({number}({unit}pg_catalog.upper(published))
                           OPERATOR(pg_catalog.-)
                           {number}({unit}pg_catalog.lower(published)), 0),
                    'NaN'
                )
           ELSE 0 END
$function$;

COMMENT ON FUNCTION dbanon.share({range}, {range}) IS
    'The share of a class whose values lie in the wanted range, if all values of the published range are equally likely; NULL if an end of it is open and the wanted range cuts it.';
