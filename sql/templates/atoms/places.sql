-- The persons that were read, by keyed hash.
CREATE TEMPORARY TABLE history_places ON COMMIT DROP AS
SELECT l.place, {person} AS person
  FROM {read} AS l
  JOIN dbanon.history_key AS k ON k.key_id = {key}
