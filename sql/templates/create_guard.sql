-- A guard runs with its owner's rights: those who write the source have none on the release. Else
-- PostgreSQL would plan its statements anew each time, which takes longer than to run them.
CREATE OR REPLACE FUNCTION {guard}()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan'
{settings}
AS {body}
