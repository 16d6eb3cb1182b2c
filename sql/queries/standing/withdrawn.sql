-- The classes of which the next release shows nobody.
SELECT m.class
  FROM pg_temp.history_members AS m
  LEFT JOIN pg_temp.history_departed AS d ON d.person = m.person
 GROUP BY m.class
HAVING bool_and(d.person IS NOT NULL)
 ORDER BY m.class
