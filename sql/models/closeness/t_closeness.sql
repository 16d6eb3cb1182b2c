-- Finds the earth mover's distance of every class from the whole relation and compares the largest with t.
each_class AS (
    SELECT d.class, d.members, d.achieved
      FROM dbanon.distances(relation, quasi_identifiers, sensitive, {distance}, {tree}, 0, 0) AS d
)
