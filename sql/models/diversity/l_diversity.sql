-- Counts the distinct sensitive values of every equivalence class of a relation and compares the least with l.
each_class AS (
    SELECT class, members, distinct_values AS achieved
      FROM classes
)
