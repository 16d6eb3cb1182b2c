-- The classes of a table of a dataset that go with their persons.
SELECT DISTINCT u.class
  FROM pg_temp.history_before AS b
 CROSS JOIN LATERAL unnest(b.classes) AS u (class)
 WHERE b.person IN (SELECT d.person FROM {departed} AS d)
 ORDER BY u.class
