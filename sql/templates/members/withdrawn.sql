-- The classes of a table of a dataset that go with their persons.
SELECT DISTINCT d.class
  FROM {departed} AS d
 ORDER BY d.class
