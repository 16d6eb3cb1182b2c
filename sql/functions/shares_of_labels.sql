-- Return the share of wanted values in each published label, by the companion relation of labels.
CREATE OR REPLACE FUNCTION dbanon.shares_of_labels(
    labels regclass,
    column_name text,
    wanted text[]
)
RETURNS TABLE (
    label text,
    at_least integer,
    share double precision,
    at_most integer
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
                    WHERE a.attrelid = labels AND a.attname = 'values_below') THEN
        RAISE EXCEPTION '% is no relation of labels, which is named like the release, with _labels after it', labels
            USING ERRCODE = 'wrong_object_type';
    END IF;
    -- Values that no class shows alone are not in the relation. Those of them that are wanted are
    -- taken to be any of the values that are missing below a label, all equally likely.
    RETURN QUERY EXECUTE format($query$
        WITH RECURSIVE known AS (
            SELECT l.label, l.parent, greatest(l.values_below, 1) AS size,
                   l.values_below > 0 AS is_inner, l.label = ANY ($2) AS is_wanted
              FROM %s AS l
             WHERE l.column_name = $1
        ),
        above (label, ancestor) AS (
            SELECT k.label, k.label FROM known AS k
            UNION ALL
            SELECT a.label, k.parent
              FROM above AS a
              JOIN known AS k ON k.label = a.ancestor
             WHERE k.parent IS NOT NULL
        ),
        each_label AS (
            SELECT k.label, k.size, k.is_inner, p.is_within,
                   k.size - coalesce(c.size, 0) AS missing
              FROM known AS k
              JOIN (SELECT a.label, bool_or(w.is_wanted) AS is_within
                      FROM above AS a
                      JOIN known AS w ON w.label = a.ancestor
                     GROUP BY a.label) AS p ON p.label = k.label
              LEFT JOIN (SELECT b.parent AS label, sum(b.size) AS size
                           FROM known AS b
                          GROUP BY b.parent) AS c ON c.label = k.label
        ),
        elsewhere AS (
            SELECT least(1, (SELECT count(DISTINCT u.label)
                               FROM unnest($2) AS u (label)
                              WHERE NOT EXISTS (SELECT FROM known AS k WHERE k.label = u.label))
                            / nullif(sum(e.missing), 0)) AS chance
              FROM each_label AS e
             WHERE e.is_inner AND NOT e.is_within
        ),
        counted AS (
            SELECT a.ancestor AS label,
                   sum(CASE WHEN e.is_within THEN e.missing
                            WHEN e.is_inner THEN e.missing * coalesce(s.chance, 0)
                            ELSE 0 END) AS wanted
              FROM above AS a
              JOIN each_label AS e ON e.label = a.label
             CROSS JOIN elsewhere AS s
             GROUP BY a.ancestor
        )
        SELECT e.label,
               e.is_within::integer,
               CASE WHEN e.is_within THEN 1 ELSE (c.wanted / e.size)::double precision END,
               (e.is_within OR c.wanted > 0)::integer
          FROM each_label AS e
          JOIN counted AS c ON c.label = e.label
    $query$, labels) USING column_name, wanted;
    -- A name with a mistake in it would be a count of nothing.
    IF NOT FOUND THEN
        RAISE EXCEPTION '% has no labels of column %', labels, column_name
            USING ERRCODE = 'undefined_column';
    END IF;
END
$function$;

COMMENT ON FUNCTION dbanon.shares_of_labels(regclass, text, text[]) IS
    'What each label of a column says of the wanted labels and values, by the relation of labels beside a release: whether all of its values are wanted, which share of them, and whether any may be.';
