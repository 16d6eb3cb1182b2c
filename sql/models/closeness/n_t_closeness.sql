-- Finds the distance of every class from the nearest set of n rows that agree with it in the first quasi-identifiers.
sizes AS (
    SELECT class, sum(members) AS members
      FROM cells
     GROUP BY class
),
nearest AS (
    SELECT d.class, min(d.achieved) AS achieved
      FROM generate_series(0, cardinality(quasi_identifiers)) AS p (prefix)
     CROSS JOIN LATERAL dbanon.distances(relation, quasi_identifiers, sensitive, {distance}, {tree},
                                         p.prefix, {n}) AS d
     GROUP BY d.class
),
each_class AS (
    SELECT s.class, s.members, coalesce(e.achieved, 'Infinity') AS achieved
      FROM sizes AS s
      LEFT JOIN nearest AS e ON e.class = s.class
)
