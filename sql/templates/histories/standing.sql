-- Who of those that were read is published now, in which classes, and who ever was. The hash of each
-- is worked out once.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
WITH read AS MATERIALIZED (
    SELECT l.place, {person} AS person
      FROM {read} AS l
      JOIN dbanon.history_key AS k ON k.key_id = {key}
)
SELECT h.place, h.person, s.classes, n.person IS NOT NULL AS is_known
  FROM read AS h
  LEFT JOIN pg_temp.history_before AS s ON s.person = h.person
  LEFT JOIN (SELECT DISTINCT e.person FROM pg_temp.history_entries AS e) AS n ON n.person = h.person
