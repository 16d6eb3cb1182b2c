-- Persons who were read, by keyed hash, each in the place that the program knows; only within publishing.
CREATE TEMPORARY TABLE {hashed} ON COMMIT DROP AS
SELECT l.place, {person} AS person
  FROM {read} AS l
 CROSS JOIN dbanon.history_key AS k
 WHERE k.key_id = {key}
