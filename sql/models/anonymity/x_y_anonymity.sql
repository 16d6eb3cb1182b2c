-- Counts the distinct values of the columns y with each value of the columns x and compares the least with k.
each_class AS (
    SELECT class, members, distinct_values AS achieved
      FROM classes
)
