-- What is remembered of some persons.
CREATE TEMPORARY TABLE {entries} ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM {among} AS e
 WHERE e.person IN (SELECT p.person FROM {persons} AS p WHERE {condition})
