-- Find who ever came to the classes in which some persons were.
CREATE TEMPORARY TABLE history_classes ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.relation = %(relation)s
   AND e.shown IN (SELECT b.shown FROM pg_temp.history_before AS b)
