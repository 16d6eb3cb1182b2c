-- Make the check of a privacy model, whose fragment computes what each class achieves. What it
-- cannot compare fails.
CREATE OR REPLACE FUNCTION dbanon.{check}(
    {arguments}
)
RETURNS TABLE (
    required {of_required},
    achieved {of_achieved},
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
#variable_conflict use_column
BEGIN
    IF NOT coalesce({allowed}, false) THEN
        RAISE EXCEPTION {refusal}
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
{judged};
END
$function$;

COMMENT ON FUNCTION dbanon.{check}({types}) IS {sentence};
