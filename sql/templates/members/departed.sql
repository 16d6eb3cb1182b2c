-- Whom the next release of a table of a dataset does not show any more: whose persons are not. Their
-- classes go as a whole.
CREATE TEMPORARY TABLE {departed} ON COMMIT DROP AS
SELECT b.person, b.class, b.value_id
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT p.person FROM {persons} AS p)
