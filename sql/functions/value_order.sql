-- Return the values of a sensitive column in order, NULL if its type has the order.
CREATE OR REPLACE FUNCTION dbanon.value_order(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    tree jsonb
)
RETURNS text[]
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    value_order text[];
    of_texts boolean;
    lacking bigint;
BEGIN
    -- {"order": ["low", "medium", "high"]} goes over the order of an enum. The bytes of texts say
    -- nothing of what the texts mean, so that texts without an order have none.
    WITH RECURSIVE base (typid, collation_id) AS (
        SELECT a.atttypid, a.attcollation
          FROM pg_attribute AS a
         WHERE a.attrelid = relation
           AND a.attname = sensitive
           AND a.attnum > 0
           AND NOT a.attisdropped
        UNION ALL
        SELECT t.typbasetype, b.collation_id
          FROM base AS b
          JOIN pg_type AS t ON t.oid = b.typid
         WHERE t.typtype = 'd'
    )
    SELECT CASE WHEN tree ? 'order' THEN ARRAY(SELECT jsonb_array_elements_text(tree -> 'order'))
                WHEN t.typtype = 'e'
                THEN ARRAY(SELECT e.enumlabel::text
                             FROM pg_enum AS e
                            WHERE e.enumtypid = t.oid
                            ORDER BY e.enumsortorder) END,
           b.collation_id <> 0
      INTO value_order, of_texts
      FROM base AS b
      JOIN pg_type AS t ON t.oid = b.typid AND t.typtype <> 'd';
    IF value_order IS NULL THEN
        IF of_texts THEN
            RAISE EXCEPTION 'the ordered distance needs the order of column %, which holds texts',
                            quote_ident(sensitive)
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = 'tree => ''{"order": ["low", "medium", "high"]}''';
        END IF;
        RETURN NULL;
    END IF;

    SELECT count(DISTINCT t.label)
      INTO lacking
      FROM dbanon.tally(relation, quasi_identifiers, sensitive) AS t
     WHERE NOT EXISTS (SELECT FROM unnest(value_order) AS u (label)
                        WHERE u.label = t.label COLLATE "C");
    IF lacking > 0 THEN
        RAISE EXCEPTION 'the order of column % lacks % of its values', quote_ident(sensitive), lacking
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN value_order;
END
$function$;

COMMENT ON FUNCTION dbanon.value_order(regclass, text[], text, jsonb) IS
    'The order of values that the ordered distance goes by: the one given, that of an enum, or NULL for that of the type.';
