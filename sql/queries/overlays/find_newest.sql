-- Find what a release changed.
CREATE TEMPORARY TABLE history_newest ON COMMIT DROP AS
SELECT e.person, e.shown
  FROM pg_temp.history_entries AS e
 WHERE e.release_id = %(newest)s
