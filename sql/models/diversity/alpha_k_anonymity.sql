-- Compares the share of the most frequent sensitive value of every class with alpha; k is checked apart.
each_class AS (
    SELECT class, sum(members) AS members,
           max(members)::double precision / sum(members) AS achieved
      FROM cells
     GROUP BY class
)
