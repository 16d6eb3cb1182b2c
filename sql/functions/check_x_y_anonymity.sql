-- Prove (X, Y)-anonymity: every value of the columns x occurs with at least k values of the columns y.
CREATE OR REPLACE FUNCTION dbanon.check_x_y_anonymity(
    relation regclass,
    x text[],
    y text[],
    k integer
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
DECLARE
    x_key text;
    x_columns text;
    x_aliases text;
    y_key text;
    target text;
BEGIN
    IF relation IS NULL OR k IS NULL OR k < 1 OR coalesce(cardinality(x), 0) = 0
       OR coalesce(cardinality(y), 0) = 0 OR x && y THEN
        RAISE EXCEPTION 'check_x_y_anonymity needs a relation, columns x, other columns y and k >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname)
      INTO target
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = relation;

    SELECT string_agg(format('r.%I', q.name), ', ' ORDER BY q.position),
           string_agg(format('r.%I AS q%s', q.name, q.position), ', ' ORDER BY q.position),
           string_agg(format('v.q%s', q.position), ', ' ORDER BY q.position)
      INTO x_key, x_columns, x_aliases
      FROM unnest(x) WITH ORDINALITY AS q (name, position);
    SELECT string_agg(format('r.%I', q.name), ', ' ORDER BY q.position)
      INTO y_key
      FROM unnest(y) WITH ORDINALITY AS q (name, position);

    RETURN QUERY EXECUTE format(
        'SELECT $1::double precision,'
        '       min(c.linked)::double precision,'
        '       count(*),'
        '       count(*) FILTER (WHERE c.linked < $1),'
        '       coalesce(sum(c.members), 0)::bigint,'
        '       CASE WHEN count(*) = 0 THEN ''not checked'''
        '            WHEN min(c.linked) >= $1 THEN ''passed'''
        '            ELSE ''failed'' END'
        '  FROM (SELECT count(*) AS linked, sum(v.members) AS members'
        '          FROM (SELECT %1$s, count(*) AS members'
        '                  FROM %2$s AS r'
        '                 GROUP BY %3$s, %4$s) AS v'
        '         GROUP BY %5$s) AS c',
        x_columns, target, x_key, y_key, x_aliases
    ) USING k;
END
$function$;

COMMENT ON FUNCTION dbanon.check_x_y_anonymity(regclass, text[], text[], integer) IS
    'Counts the distinct values of the columns y with each value of the columns x and compares the least with k.';
