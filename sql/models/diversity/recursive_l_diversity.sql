-- Finds the c that every class stays below: infinite with fewer than l sensitive values.
ranked AS (
    SELECT class, members,
           row_number() OVER (PARTITION BY class ORDER BY members DESC, value) AS place
      FROM cells
),
each_class AS (
    SELECT class, sum(members) AS members,
           CASE WHEN {l} = 1 THEN 0
                ELSE coalesce(max(members) / sum(members::double precision)
                                             FILTER (WHERE place >= {l}), 'Infinity')
           END AS achieved
      FROM ranked
     GROUP BY class
)
