-- Counts the distinct sensitive values of every class and compares the least with p; k is checked apart.
each_class AS (
    SELECT class, members, distinct_values AS achieved
      FROM classes
)
