-- Who of those that were read is published now, in which classes, and who ever was.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT h.place, h.person, s.classes,
       EXISTS (SELECT FROM pg_temp.history_entries AS e WHERE e.person = h.person) AS is_known
  FROM (SELECT l.place, {person} AS person
          FROM {read} AS l
          JOIN dbanon.history_key AS k ON k.key_id = {key}) AS h
  LEFT JOIN pg_temp.history_before AS s ON s.person = h.person
