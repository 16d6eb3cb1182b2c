-- Prove positive disclosure-recursive (c, l)-diversity: recursive, but for values that all may learn.
CREATE OR REPLACE FUNCTION dbanon.check_pd_recursive_l_diversity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    c double precision,
    l integer,
    positive text[]
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
#variable_conflict use_column
BEGIN
    IF NOT coalesce(check_pd_recursive_l_diversity.c > 0
                        AND check_pd_recursive_l_diversity.c < 'Infinity'
                        AND check_pd_recursive_l_diversity.l >= 1
                        AND cardinality(check_pd_recursive_l_diversity.positive) > 0
                        AND array_position(check_pd_recursive_l_diversity.positive, NULL) IS NULL, false) THEN
        RAISE EXCEPTION 'check_pd_recursive_l_diversity needs c > 0, l >= 1 and values whose disclosure is acceptable'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH cells AS (
        SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
    ),
    ranked AS (
        SELECT class, label, members,
               row_number() OVER (PARTITION BY class ORDER BY members DESC, value) AS place
          FROM cells
    ),
    guarded AS (
        SELECT class, min(place) FILTER (WHERE label IS NULL OR label <> ALL (check_pd_recursive_l_diversity.positive)) AS y
          FROM ranked
         GROUP BY class
    ),
    sums AS (
        SELECT r.class, g.y, sum(r.members) AS members,
               sum(r.members) FILTER (WHERE r.place = g.y) AS top,
               sum(r.members::double precision) FILTER (
                   WHERE CASE WHEN g.y <= check_pd_recursive_l_diversity.l - 1 THEN r.place >= check_pd_recursive_l_diversity.l
                              ELSE r.place >= check_pd_recursive_l_diversity.l - 1 AND r.place <> g.y END) AS tail
          FROM ranked AS r
          JOIN guarded AS g ON g.class = r.class
         GROUP BY r.class, g.y
    ),
    each_class AS (
        SELECT s.class, s.members,
               CASE WHEN check_pd_recursive_l_diversity.l = 1 OR s.y IS NULL THEN 0
                    ELSE coalesce(s.top / s.tail, 'Infinity') END AS achieved
          FROM sums AS s
    )
    SELECT check_pd_recursive_l_diversity.c::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved >= check_pd_recursive_l_diversity.c - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved >= check_pd_recursive_l_diversity.c - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_pd_recursive_l_diversity(regclass, text[], text, double precision, integer, text[]) IS
    'Finds the c that every class stays below, for the most frequent value that is not to be disclosed.';
