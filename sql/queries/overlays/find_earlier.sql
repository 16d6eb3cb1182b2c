-- Find what those whom a release changed had been before.
CREATE TEMPORARY TABLE history_earlier ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.release_id < %(newest)s
   AND e.person IN (SELECT n.person FROM pg_temp.history_newest AS n)
