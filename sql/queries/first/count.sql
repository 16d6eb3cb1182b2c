-- Count the persons whom the first release of a series shows with the same values in a class. Each has one
-- row, and no other release to be told by, so that the classes are the cells.
CREATE TEMPORARY TABLE history_counted ON COMMIT DROP AS
SELECT e.class, e.value_id, count(*) AS persons
  FROM pg_temp.history_entries AS e
 GROUP BY e.class, e.value_id
