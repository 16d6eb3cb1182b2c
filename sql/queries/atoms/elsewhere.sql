-- The places of those whom only other relations ever showed, and the atom of each: all who always were in
-- the same classes. Atoms of whom somebody is gone, or has other values than were shown last, are left out.
WITH member AS (
    SELECT c.cell, s.place, s.value_id IS NOT DISTINCT FROM v.value_id AS is_same
      FROM pg_temp.history_late AS l
      JOIN pg_temp.history_late_cells AS c ON c.person = l.person
      JOIN (SELECT DISTINCT ON (e.person) e.person, e.value_id
              FROM pg_temp.history_of_late AS e
             WHERE e.class <> 0
             ORDER BY e.person, e.release_id DESC) AS v ON v.person = l.person
      LEFT JOIN pg_temp.history_source AS s ON s.person = l.person
)
SELECT m.place, dense_rank() OVER (ORDER BY m.cell) - 1
  FROM member AS m
 WHERE m.cell IN (SELECT w.cell
                    FROM member AS w
                   GROUP BY w.cell
                  HAVING bool_and(w.place IS NOT NULL AND w.is_same))
 ORDER BY m.place
