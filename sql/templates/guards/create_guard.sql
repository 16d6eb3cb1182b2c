-- A guard runs with its owner's rights: those who write the source have none on the release. Its
-- statements are not planned anew each time, which takes longer than to run them, nor for the many
-- classes that PostgreSQL expects of an array: without indexes it would read the whole source.
CREATE OR REPLACE FUNCTION {guard}()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan'
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET jit = off
{settings}
AS {body}
