-- Find those whose cell may be another one with a release: who changed in it, and who was in a cell
-- with them. former: the cell of before; is_split: whether its members are in several now.
CREATE TEMPORARY TABLE history_moved ON COMMIT DROP AS
WITH moved AS (
    SELECT c.person, f.cell AS former, c.cell
      FROM pg_temp.history_cells AS c
      JOIN (SELECT DISTINCT n.person
              FROM pg_temp.history_newest AS n) AS n ON n.person = c.person
      LEFT JOIN pg_temp.history_left AS f ON f.person = c.person
     UNION ALL
    SELECT c.person, c.cell, c.cell
      FROM pg_temp.history_cells AS c
     WHERE c.cell IN (SELECT f.cell FROM pg_temp.history_left AS f)
)
SELECT m.person, m.former, m.cell, s.former IS NOT NULL AS is_split
  FROM moved AS m
  LEFT JOIN (SELECT p.former
               FROM moved AS p
              WHERE p.former IS NOT NULL
              GROUP BY p.former
             HAVING count(DISTINCT p.cell) > 1) AS s ON s.former = m.former
