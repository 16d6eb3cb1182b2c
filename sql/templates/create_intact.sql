-- Tell whether a live view may show anything: readers call it, and workers, with its owner's rights.
CREATE FUNCTION {intact}()
RETURNS boolean
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}
