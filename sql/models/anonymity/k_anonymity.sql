-- Counts the rows of every equivalence class of a relation and compares the smallest with k.
each_class AS (
    SELECT class, members, members AS achieved
      FROM classes
)
