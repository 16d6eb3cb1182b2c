-- Whom a relation showed in a release, each row with its class and value.
SELECT e.person, e.class, e.value_id, e.shown, e.place
  FROM {entries} AS e
 WHERE e.relation = {relation}
   AND e.release_id <= {release}
   AND (e.until > {release} OR e.until IS NULL)
   AND e.class <> 0
