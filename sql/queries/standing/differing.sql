-- Who of those that were read or are published now is not both, or with other values. Everybody else
-- stays as he is, and is not written down.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT person, s.place, s.value_id, b.class, b.value_id AS shown_id
  FROM pg_temp.history_source AS s
  FULL JOIN pg_temp.history_before AS b USING (person)
 WHERE s.place IS NULL
    OR b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id
