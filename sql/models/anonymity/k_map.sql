-- Counts the rows of a population that a row of each class may be and compares the least with k.
each_class AS (
    -- What the classes around take of a region is missing in it, and they take no more than they
    -- have rows, nor more than they share; its own rows are left to every class.
    SELECT p.class, p.members,
           least(p.covered, greatest(p.members, p.alone, p.covered - p.taken)) AS achieved
      FROM presence AS p
     WHERE p.class IS NOT NULL
)
