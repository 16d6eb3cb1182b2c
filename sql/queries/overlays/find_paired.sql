-- Find those of whom comparing a release with others may tell something else than comparing the one
-- before it: who is in none of its classes, or in one that somebody came to or went from.
CREATE TEMPORARY TABLE history_paired ON COMMIT DROP AS
WITH changed AS (
    SELECT n.shown
      FROM pg_temp.history_newest AS n
     UNION
    SELECT w.shown
      FROM pg_temp.history_was AS w
)
SELECT c.person
  FROM pg_temp.history_cells AS c
  LEFT JOIN pg_temp.history_now AS s ON s.person = c.person
 WHERE s.person IS NULL
    OR s.shown IN (SELECT n.shown FROM changed AS n)
