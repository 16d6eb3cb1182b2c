-- Whom a relation showed in a release, each row with its class and value.
SELECT e.person, e.class, e.value_id, e.shown, e.place
  FROM {entries} AS e
 WHERE e.relation = {relation}
   AND e.release_id <= {release}
   AND e.class <> 0
   AND NOT EXISTS (SELECT
                     FROM {entries} AS l
                    WHERE l.person = e.person
                      AND l.relation = {relation}
                      AND l.release_id > e.release_id
                      AND l.release_id > {relation}  -- nothing came before the first
                      AND l.release_id <= {release})
