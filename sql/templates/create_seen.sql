-- Tell a snapshot that is too old to see the release that it cannot be read: it would look empty.
-- Workers may call it, or no reader's query would run in parallel.
CREATE OR REPLACE FUNCTION {seen}()
RETURNS boolean
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}
