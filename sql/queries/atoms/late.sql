-- Whom only other relations ever showed.
CREATE TEMPORARY TABLE history_late ON COMMIT DROP AS
SELECT e.person
  FROM pg_temp.history_entries AS e
 GROUP BY e.person
HAVING bool_and(e.relation <> %(relation)s)
