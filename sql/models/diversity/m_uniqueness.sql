-- Counts the rows of every class: 0 where a sensitive value repeats.
each_class AS (
    SELECT class, sum(members) AS members,
           CASE WHEN max(members) = 1 THEN count(*) ELSE 0 END AS achieved
      FROM cells
     GROUP BY class
)
