-- Find the persons of classes that were withdrawn.
CREATE TEMPORARY TABLE history_gone ON COMMIT DROP AS
SELECT DISTINCT b.person
  FROM pg_temp.history_before AS b
  JOIN unnest(%(withdrawn)s::bigint[]) AS w (class) ON w.class = b.class
