-- Prove of a release by anatomy that no value is on more than one in l of a bucket, and that both of its relations have the same buckets.
CREATE OR REPLACE FUNCTION dbanon.check_anatomy(
    relation regclass,
    sensitive text,
    l double precision
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
    persons text;
    buckets text;
BEGIN
    IF relation IS NULL OR sensitive IS NULL OR NOT coalesce(l >= 1 AND l < 'Infinity', false) THEN
        RAISE EXCEPTION 'check_anatomy needs a relation, a sensitive column and l >= 1'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname),
           quote_ident(n.nspname) || '.' || quote_ident(b.relname)
      INTO persons, buckets
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
      LEFT JOIN pg_class AS b
        ON b.relnamespace = c.relnamespace
       AND b.relname = c.relname || '_sensitive'
     WHERE c.oid = relation;
    IF buckets IS NULL THEN
        RAISE EXCEPTION '% has no relation of sensitive values beside it', relation
            USING ERRCODE = 'undefined_table';
    END IF;
    IF EXISTS (SELECT
                 FROM pg_attribute AS a
                WHERE a.attrelid = relation
                  AND a.attname = sensitive
                  AND NOT a.attisdropped) THEN
        RAISE EXCEPTION '% shows the column % of each row', relation, quote_ident(sensitive)
            USING ERRCODE = 'duplicate_column';
    END IF;

    -- A bucket that only one of them has, or has otherwise, achieves nothing. NULL joins with nothing,
    -- and what is counted wrong is no count. Sums of bigint would be numeric, and take twice the time.
    -- Values are sorted before they are counted: few buckets have one twice, and they are published in this order.
    RETURN QUERY EXECUTE format(
        'WITH person AS (SELECT p.bucket, count(*) AS members'
        '                  FROM %1$s AS p'
        '                 GROUP BY p.bucket),'
        '     held AS (SELECT v.bucket,'
        '                     sum(CASE WHEN v.count BETWEEN 1 AND 2147483647 THEN v.count::integer END)'
        '                         AS members,'
        '                     bool_and(coalesce(v.count BETWEEN 1 AND 2147483647, false)) AS is_counted'
        '                FROM (SELECT o.* FROM %2$s AS o ORDER BY o.bucket, o.%3$I) AS v'
        '               GROUP BY v.bucket, v.%3$I),'
        '     valued AS (SELECT h.bucket, sum(h.members::double precision) AS members, max(h.members) AS most,'
        '                       bool_and(h.is_counted) AS is_counted'
        '                  FROM held AS h'
        '                 GROUP BY h.bucket),'
        '     bucket AS (SELECT coalesce(p.members, 0) AS members,'
        '                       CASE WHEN p.members = v.members AND v.is_counted'
        '                            THEN v.members / v.most::double precision'
        '                            ELSE 0 END AS achieved'
        '                  FROM person AS p'
        '                  FULL JOIN valued AS v ON v.bucket = p.bucket)'
        'SELECT $1,'
        '       min(b.achieved),'
        '       count(*),'
        '       count(*) FILTER (WHERE b.achieved < $1 - 1e-9),'
        '       coalesce(sum(b.members), 0)::bigint,'
        '       CASE WHEN count(*) = 0 THEN ''not checked'''
        '            WHEN bool_and(b.achieved >= $1 - 1e-9) THEN ''passed'''
        '            ELSE ''failed'' END'
        '  FROM bucket AS b',
        persons, buckets, sensitive
    ) USING l;
END
$function$;

COMMENT ON FUNCTION dbanon.check_anatomy(regclass, text, double precision) IS
    'One row: whether no value is on more than one in l of a bucket of a release by anatomy, and its two relations agree.';
