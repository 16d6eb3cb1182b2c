-- Compares the rows of every class with those of its most frequent sensitive value.
each_class AS (
    SELECT class, sum(members::double precision)::bigint AS members,
           sum(members::double precision) / max(members) AS achieved
      FROM cells
     GROUP BY class
)
