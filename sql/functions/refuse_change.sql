-- Refuse every change of a released table, by any role and any statement.
CREATE OR REPLACE FUNCTION dbanon.refuse_change()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RAISE EXCEPTION 'released tables are immutable: % of %.% is refused', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
              HINT = 'dbanon refresh publishes again, dbanon release drop withdraws.';
END
$function$;

COMMENT ON FUNCTION dbanon.refuse_change() IS
    'The trigger of every released table, which lets nobody change it.';
