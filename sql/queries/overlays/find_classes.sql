-- Find what is remembered of those who ever came to the classes in which some persons ever were.
CREATE TEMPORARY TABLE history_classes ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT o.person
                      FROM pg_temp.history_entries AS o
                     WHERE (o.relation, o.shown) IN (SELECT p.relation, p.shown
                                                       FROM pg_temp.history_of_paired AS p
                                                      WHERE p.class <> 0))
