-- Have a worker refresh what is published of a table: one job, however often it is asked for while it waits.
CREATE OR REPLACE FUNCTION dbanon.enqueue(source regclass)
RETURNS boolean
LANGUAGE sql
VOLATILE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH entered AS (
        INSERT INTO dbanon.job (table_schema, table_name)
        SELECT n.nspname, c.relname
          FROM pg_class AS c
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE c.oid = source
        ON CONFLICT (table_schema, table_name) WHERE state = 'waiting' DO NOTHING
        RETURNING job_id
    )
    SELECT count(pg_notify('dbanon_job', '')) > 0
      FROM entered
$function$;

COMMENT ON FUNCTION dbanon.enqueue(regclass) IS
    'Have a worker refresh what is published of a table, as a schedule does; false if a job of it waits already.';
