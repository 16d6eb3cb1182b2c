-- Compares the share of the most frequent of some listed sensitive values in every class with alpha; k is checked apart.
each_class AS (
    SELECT class, sum(members) AS members,
           coalesce(max(members) FILTER (WHERE label = ANY ({listed})), 0)::double precision
           / sum(members) AS achieved
      FROM cells
     GROUP BY class
)
