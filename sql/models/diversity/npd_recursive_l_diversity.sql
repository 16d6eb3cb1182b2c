-- Finds the c that every class stays below: infinite where a negative value is too rare.
kept AS (
    WITH {pd_recursive_l_diversity}
    SELECT class, members, achieved FROM each_class
),
rarest AS (
    SELECT class, min(members) AS fewest
      FROM (SELECT c.class, n.label, coalesce(sum(c.members) FILTER (WHERE c.label = n.label), 0)
                   AS members
              FROM cells AS c
             CROSS JOIN unnest({negative}) AS n (label)
             GROUP BY c.class, n.label) AS x
     GROUP BY class
),
each_class AS (
    SELECT k.class, k.members,
           CASE WHEN k.members * {share} - 1e-9 * k.members > r.fewest THEN 'Infinity'
                ELSE k.achieved END AS achieved
      FROM kept AS k
      JOIN rarest AS r ON r.class = k.class
)
