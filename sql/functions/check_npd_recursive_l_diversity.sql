-- Prove negative/positive disclosure-recursive diversity: each negative value also has a least share.
CREATE OR REPLACE FUNCTION dbanon.check_npd_recursive_l_diversity(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    c double precision,
    l integer,
    positive text[],
    share double precision,
    negative text[]
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
    IF NOT coalesce(check_npd_recursive_l_diversity.c > 0
                        AND check_npd_recursive_l_diversity.c < 'Infinity'
                        AND check_npd_recursive_l_diversity.l >= 1
                        AND cardinality(check_npd_recursive_l_diversity.positive) > 0
                        AND array_position(check_npd_recursive_l_diversity.positive, NULL) IS NULL
                        AND check_npd_recursive_l_diversity.share > 0
                        AND check_npd_recursive_l_diversity.share <= 1
                        AND cardinality(check_npd_recursive_l_diversity.negative) > 0
                        AND array_position(check_npd_recursive_l_diversity.negative, NULL) IS NULL, false) THEN
        RAISE EXCEPTION 'check_npd_recursive_l_diversity needs c > 0, l >= 1, positive and negative values, and a least share in (0, 1]'
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
        SELECT class, min(place) FILTER (WHERE label IS NULL OR label <> ALL (check_npd_recursive_l_diversity.positive)) AS y
          FROM ranked
         GROUP BY class
    ),
    sums AS (
        SELECT r.class, g.y, sum(r.members) AS members,
               sum(r.members) FILTER (WHERE r.place = g.y) AS top,
               sum(r.members::double precision) FILTER (
                   WHERE CASE WHEN g.y <= check_npd_recursive_l_diversity.l - 1 THEN r.place >= check_npd_recursive_l_diversity.l
                              ELSE r.place >= check_npd_recursive_l_diversity.l - 1 AND r.place <> g.y END) AS tail
          FROM ranked AS r
          JOIN guarded AS g ON g.class = r.class
         GROUP BY r.class, g.y
    ),
    rarest AS (
        SELECT class, min(members) AS fewest
          FROM (SELECT r.class, n.label, coalesce(sum(r.members) FILTER (WHERE r.label = n.label), 0)
                       AS members
                  FROM ranked AS r
                 CROSS JOIN unnest(check_npd_recursive_l_diversity.negative) AS n (label)
                 GROUP BY r.class, n.label) AS x
         GROUP BY class
    ),
    each_class AS (
        SELECT s.class, s.members,
               CASE WHEN s.members * check_npd_recursive_l_diversity.share - 1e-9 * s.members > r.fewest THEN 'Infinity'
                    ELSE CASE WHEN check_npd_recursive_l_diversity.l = 1 OR s.y IS NULL THEN 0
                         ELSE coalesce(s.top / s.tail, 'Infinity') END END AS achieved
          FROM sums AS s
          JOIN rarest AS r ON r.class = s.class
    )
    SELECT check_npd_recursive_l_diversity.c::double precision,
           max(e.achieved)::double precision,
           count(*),
           count(*) FILTER (WHERE e.achieved >= check_npd_recursive_l_diversity.c - 1e-9),
           coalesce(sum(e.members), 0)::bigint,
           CASE WHEN count(*) = 0 THEN 'not checked'
                WHEN bool_or(e.achieved >= check_npd_recursive_l_diversity.c - 1e-9) THEN 'failed'
                ELSE 'passed' END
      FROM each_class AS e;
END
$function$;

COMMENT ON FUNCTION dbanon.check_npd_recursive_l_diversity(regclass, text[], text, double precision, integer, text[], double precision, text[]) IS
    'Finds the c that every class stays below: infinite where a negative value is too rare.';
