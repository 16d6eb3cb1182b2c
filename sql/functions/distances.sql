-- Find how far the sensitive values of each class are distributed from those of a set of rows around it.
CREATE OR REPLACE FUNCTION dbanon.distances(
    relation regclass,
    quasi_identifiers text[],
    sensitive text,
    distance text,
    tree jsonb,
    prefix integer,
    least_rows bigint
)
RETURNS TABLE (
    class bigint,
    members bigint,
    achieved double precision
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    class_aliases text;
    class_columns text;
    set_aliases text;
    target text;
    value_order text[];
BEGIN
    IF NOT coalesce(distances.distance IN ('equal', 'ordered', 'hierarchical'), false)
       OR (distances.distance = 'hierarchical' AND tree IS NULL) THEN
        RAISE EXCEPTION 'a distance is equal, ordered, or hierarchical with the tree of the values'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF distances.distance = 'ordered' THEN
        value_order := dbanon.value_order(relation, quasi_identifiers, sensitive, tree);
    END IF;

    SELECT format('%I.%I', n.nspname, c.relname)
      INTO target
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = relation;

    SELECT string_agg(format('r.%I AS q%s', q.name, q.position), ', ' ORDER BY q.position),
           string_agg(format('v.q%s', q.position), ', ' ORDER BY q.position),
           string_agg(format('v.q%s', q.position), ', ' ORDER BY q.position)
               FILTER (WHERE q.position <= prefix)
      INTO class_columns, class_aliases, set_aliases
      FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, position);

    -- The set of a class: the rows that agree with it in the first quasi-identifiers. Classes are
    -- numbered as dbanon.tally numbers them.
    RETURN QUERY EXECUTE format(
        'WITH cells AS MATERIALIZED ('
        '         SELECT t.class, t.label, t.members,'
        '                CASE WHEN $7 IS NULL THEN t.value'
        '                     ELSE dense_rank() OVER (ORDER BY t.label IS NULL, o.rank) END AS value'
        '           FROM dbanon.tally($1, $2, $3) AS t'
        '           LEFT JOIN (SELECT u.label, min(u.rank) AS rank'
        '                        FROM unnest($7) WITH ORDINALITY AS u (label, rank)'
        '                       GROUP BY u.label) AS o ON o.label = t.label COLLATE "C"),'
        '     set_of_class AS MATERIALIZED ('
        '         SELECT dense_rank() OVER (ORDER BY %1$s) AS class,'
        '                dense_rank() OVER (ORDER BY %2$s) AS set_id'
        '           FROM (SELECT DISTINCT %3$s FROM %4$s AS r) AS v),'
        '     joined AS MATERIALIZED ('
        '         SELECT c.*, s.set_id, sum(c.members) OVER (PARTITION BY s.set_id) AS set_members,'
        '                sum(c.members) OVER (PARTITION BY c.class) AS class_members'
        '           FROM cells AS c'
        '           JOIN set_of_class AS s ON s.class = c.class),'
        '     near AS MATERIALIZED (SELECT j.* FROM joined AS j WHERE j.set_members >= $6),'
        '     shares AS MATERIALIZED ('
        '         SELECT n.set_id, n.value, max(n.label) AS label,'
        '                (sum(n.members) / max(n.set_members))::double precision AS share'
        '           FROM near AS n'
        '          GROUP BY n.set_id, n.value),'
        '     edges AS MATERIALIZED (%6$s)'
        ' SELECT d.class, d.members, d.achieved FROM (%5$s) AS d',
        class_aliases, coalesce(set_aliases, '1::integer'), class_columns, target,
        CASE distances.distance
        WHEN 'equal' THEN
            'SELECT n.class, sum(n.members)::bigint AS members,'
            '       sum(abs(n.members::double precision / n.class_members - s.share)) / 2'
            '           + (1 - sum(s.share)) / 2 AS achieved'
            '  FROM near AS n'
            '  JOIN shares AS s ON s.set_id = n.set_id AND s.value = n.value'
            ' GROUP BY n.class'
        WHEN 'ordered' THEN
            -- Between two values of a class its cumulated share stays what it is, and a prefix sum
            -- of the set''s cumulated shares on either side of that level gives the rest.
            'SELECT l.class, max(l.class_members)::bigint AS members,'
            '       (sum(CASE WHEN l.level IS NULL THEN p.sums[l.upto + 1]'
            '                 ELSE l.level * (2 * b.split - l.since - l.upto)'
            '                      - 2 * p.sums[b.split + 1] + p.sums[l.since + 1] + p.sums[l.upto + 1]'
            '            END) / greatest(max(cardinality(p.steps)) - 1, 1)) AS achieved'
            '  FROM (SELECT n.class, n.set_id, n.class_members, n.value - 1 AS since,'
            '               lead(n.value - 1, 1, m.n_values) OVER w AS upto,'
            '               sum(n.members) OVER (w ROWS UNBOUNDED PRECEDING)'
            '                   / n.class_members::double precision AS level'
            '          FROM near AS n'
            '         CROSS JOIN (SELECT max(c.value) AS n_values FROM cells AS c) AS m'
            '        WINDOW w AS (PARTITION BY n.class ORDER BY n.value)'
            '         UNION ALL'
            '        SELECT n.class, n.set_id, max(n.class_members), 0, min(n.value) - 1, NULL'
            '          FROM near AS n'
            '         GROUP BY n.class, n.set_id) AS l'
            '  JOIN (SELECT c.set_id, array_agg(c.step ORDER BY c.value) AS steps,'
            '               array_prepend(0::double precision, array_agg(c.total ORDER BY c.value))'
            '                   AS sums'
            '          FROM (SELECT x.set_id, x.value, x.step,'
            '                       sum(x.step) OVER (PARTITION BY x.set_id ORDER BY x.value) AS total'
            '                  FROM (SELECT g.set_id, v.value,'
            '                               sum(coalesce(s.share, 0))'
            '                                   OVER (PARTITION BY g.set_id ORDER BY v.value) AS step'
            '                          FROM (SELECT DISTINCT s.set_id FROM shares AS s) AS g'
            '                         CROSS JOIN (SELECT DISTINCT c.value FROM cells AS c) AS v'
            '                          LEFT JOIN shares AS s'
            '                            ON s.set_id = g.set_id AND s.value = v.value) AS x) AS c'
            '         GROUP BY c.set_id) AS p ON p.set_id = l.set_id'
            ' CROSS JOIN LATERAL (SELECT least(greatest(width_bucket(l.level, p.steps), l.since),'
            '                                  l.upto)::integer AS split) AS b'
            ' GROUP BY l.class'
        ELSE
            'SELECT n.class, max(n.class_members)::bigint AS members,'
            '       greatest(coalesce(max(t.total), 0) + coalesce(sum(n.weight * (abs(n.mass - m.mass) - m.mass)),'
            '                                        0), 0) AS achieved'
            '  FROM (SELECT n.class, n.set_id, n.class_members, e.node, e.weight,'
            '               sum(n.members::double precision / n.class_members) AS mass'
            '          FROM near AS n'
            '          LEFT JOIN edges AS e ON e.value = n.value'
            '         GROUP BY n.class, n.set_id, n.class_members, e.node, e.weight) AS n'
            '  LEFT JOIN (SELECT s.set_id, e.node, sum(s.share) AS mass'
            '               FROM shares AS s'
            '               JOIN edges AS e ON e.value = s.value'
            '              GROUP BY s.set_id, e.node) AS m'
            '    ON m.set_id = n.set_id AND m.node = n.node'
            '  LEFT JOIN (SELECT s.set_id, sum(s.share * e.weight) AS total'
            '               FROM shares AS s'
            '               JOIN edges AS e ON e.value = s.value'
            '              GROUP BY s.set_id) AS t ON t.set_id = n.set_id'
            ' GROUP BY n.class'
        END,
        CASE distances.distance
        WHEN 'hierarchical' THEN
            'SELECT v.value, e.node, e.weight'
            '  FROM (SELECT DISTINCT c.value, ($5 -> ''leaves'' ->> c.label)::integer AS leaf'
            '          FROM cells AS c) AS v'
            '  JOIN dbanon.tree_edges($5) AS e ON e.leaf = v.leaf'
            ' UNION ALL'
            ' SELECT DISTINCT c.value, -c.value, 0.5'
            '   FROM cells AS c'
            '  WHERE ($5 -> ''leaves'' ->> c.label) IS NULL'
        ELSE 'SELECT 1 WHERE false'
        END
    ) USING relation, quasi_identifiers, sensitive, distances.distance, tree, least_rows, value_order;
END
$function$;

COMMENT ON FUNCTION dbanon.distances(regclass, text[], text, text, jsonb, integer, bigint) IS
    'The earth mover''s distance of each class from the rows that agree with it in the first quasi-identifiers.';
