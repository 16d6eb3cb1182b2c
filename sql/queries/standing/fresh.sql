-- The places of those who were never published.
WITH absent AS MATERIALIZED (
    SELECT s.person, s.place
      FROM pg_temp.history_standing AS s
     WHERE s.class IS NULL
),
known AS MATERIALIZED (
    SELECT a.person
      FROM absent AS a
      JOIN pg_temp.history_entries AS e ON e.person = a.person
)
SELECT a.place
  FROM absent AS a
 WHERE a.person NOT IN (SELECT k.person FROM known AS k)
 ORDER BY a.place
