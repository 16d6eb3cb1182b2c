-- How many persons a release shows who were never published.
WITH newest AS MATERIALIZED (
    SELECT DISTINCT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.release_id = %(release)s
       AND e.class <> 0
),
known AS MATERIALIZED (
    SELECT DISTINCT n.person
      FROM newest AS n
      JOIN pg_temp.history_entries AS e ON e.person = n.person
     WHERE e.release_id <> %(release)s
)
SELECT (SELECT count(*) FROM newest) - (SELECT count(*) FROM known)
