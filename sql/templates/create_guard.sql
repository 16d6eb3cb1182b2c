-- A guard runs with its owner's rights: those who write the source have none on the release.
CREATE FUNCTION {guard}()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
{settings}
AS {body}
