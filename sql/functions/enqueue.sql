-- Request a refresh of the releases of a table: one job for all requests while it waits. A job that waits for another
-- attempt began earlier, so that present releases no longer complete it.
CREATE OR REPLACE FUNCTION dbanon.enqueue(source regclass)
RETURNS boolean
LANGUAGE sql
VOLATILE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH entered AS (
        INSERT INTO dbanon.job AS j (table_schema, table_name)
        SELECT n.nspname, c.relname
          FROM pg_class AS c
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE c.oid = source
        ON CONFLICT (table_schema, table_name) WHERE state = 'waiting' DO UPDATE
           SET begun_at = NULL,
               begun_after = NULL
        RETURNING j.xmax = 0 AS is_new -- a row that was there is locked before it is updated
    )
    SELECT count(pg_notify('dbanon_job', '')) FILTER (WHERE e.is_new) > 0
      FROM entered AS e
$function$;

COMMENT ON FUNCTION dbanon.enqueue(regclass) IS
    'Have a worker refresh what is published of a table, as a schedule does; false if a job of it waits already.';
