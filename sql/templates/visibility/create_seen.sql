-- Tell whether a release may be read, and a snapshot that is too old that it may not: to it the release
-- would look empty.
-- Workers may call it, or no reader's query would run in parallel.
CREATE OR REPLACE FUNCTION {seen}()
RETURNS boolean
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}
