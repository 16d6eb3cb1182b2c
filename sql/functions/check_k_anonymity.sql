-- Prove k-anonymity: every combination of published quasi-identifiers is shared by at least k rows.
CREATE OR REPLACE FUNCTION dbanon.check_k_anonymity(
    relation regclass,
    quasi_identifiers text[],
    k integer
)
RETURNS TABLE (
    required integer,
    achieved bigint,
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
DECLARE
    class_key text;
    target text;
BEGIN
    IF relation IS NULL OR k IS NULL OR k < 1 OR coalesce(cardinality(quasi_identifiers), 0) = 0 THEN
        RAISE EXCEPTION 'check_k_anonymity needs a relation, at least one quasi-identifier and k >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname)
      INTO target
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = relation;

    SELECT string_agg(format('r.%I', q.name), ', ' ORDER BY q.position)
      INTO class_key
      FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, position);

    RETURN QUERY EXECUTE format(
        'SELECT $1,'
        '       min(c.members),'
        '       count(*),'
        '       count(*) FILTER (WHERE c.members < $1),'
        '       coalesce(sum(c.members), 0)::bigint,'
        '       CASE WHEN count(*) = 0 THEN ''not checked'''
        '            WHEN min(c.members) >= $1 THEN ''passed'''
        '            ELSE ''failed'' END'
        '  FROM (SELECT count(*) AS members FROM %s AS r GROUP BY %s) AS c',
        target, class_key
    ) USING k;
END
$function$;

COMMENT ON FUNCTION dbanon.check_k_anonymity(regclass, text[], integer) IS
    'Counts the rows of every equivalence class of a relation and compares the smallest with k.';
