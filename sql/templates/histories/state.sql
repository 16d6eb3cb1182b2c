-- The classes and values of everybody whom a relation showed in a release, a row for each person.
CREATE TEMPORARY TABLE {state} ON COMMIT DROP AS
SELECT r.person, array_agg(r.class ORDER BY r.class, r.value_id) AS classes,
       array_agg(r.value_id ORDER BY r.class, r.value_id) AS value_ids
  FROM {rows} AS r
 GROUP BY r.person
