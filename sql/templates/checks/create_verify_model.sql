-- Run the check of one model by its name, with the parameters that a policy gives it.
CREATE OR REPLACE FUNCTION dbanon.verify_model(
    relation regclass,
    model text,
    quasi_identifiers text[],
    sensitive text,
    params jsonb,
    tree jsonb
)
RETURNS TABLE (
    required double precision,
    achieved double precision,
    classes bigint,
    failing_classes bigint,
    row_count bigint,
    verdict text
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_variable
BEGIN
    -- Every name is spelled out: a promise is text that somebody wrote, and names no function.
    CASE model
{cases}
    ELSE
        RAISE EXCEPTION 'there is no privacy model %', quote_literal(model)
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
END
$function$;

COMMENT ON FUNCTION dbanon.verify_model(regclass, text, text[], text, jsonb, jsonb) IS
    'One row: what the check of a model finds in a relation.';
