-- Compose the text of a value that equals that of another value if and only if the values are equal. Values that are
-- read, counted or judged outside of the database are compared by the same text.
CREATE OR REPLACE FUNCTION dbanon.equal_text(of_type oid, value text)
RETURNS text
LANGUAGE sql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    -- A cast from a type of somebody's own would run whatever function its owner made it; format()
    -- knows the output function only.
    SELECT format(CASE WHEN t.typnamespace <> 'pg_catalog'::regnamespace
                       THEN 'CASE WHEN %1$s IS NOT NULL THEN format(''%%s'', %1$s) END'
                       WHEN t.typname = 'numeric' THEN 'trim_scale(%1$s)::text'
                       WHEN t.typname IN ('float4', 'float8')
                       THEN 'CASE WHEN %1$s = 0 THEN ''0'' ELSE %1$s::text END'
                       WHEN t.typname = 'interval' THEN 'justify_interval(%1$s)::text'
                       ELSE '%1$s::text' END, value)
      FROM pg_type AS t
     WHERE t.oid = of_type
$function$;

COMMENT ON FUNCTION dbanon.equal_text(oid, text) IS
    'What a text is composed by that values of a type share if and only if they are equal.';
