-- The classes and values of everybody whom a relation showed in a release.
CREATE TEMPORARY TABLE {state} ON COMMIT DROP AS
SELECT s.person, s.classes, s.value_ids
  FROM (SELECT DISTINCT ON (e.person) e.person, e.classes, e.value_ids
          FROM pg_temp.history_entries AS e
         WHERE e.relation = format('%I.%I', {relation_schema}, {relation_name})
           AND e.release_id <= {release}
         ORDER BY e.person, e.release_id DESC) AS s
 WHERE s.classes <> '{{0}}'
