-- Name what is not as it was noted. It runs with the rights that the view reads with, so that it is
-- these of which row-level security is asked.
CREATE OR REPLACE FUNCTION {altered}()
RETURNS TABLE (kind text, relation oid, name text)
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}
