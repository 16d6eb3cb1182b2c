-- The classes of which the next release shows nobody.
SELECT b.classes[1]
  FROM pg_temp.history_before AS b
  LEFT JOIN pg_temp.history_departed AS d ON d.person = b.person
 WHERE b.classes[1] IN (SELECT t.class FROM pg_temp.history_touched AS t)
 GROUP BY b.classes[1]
HAVING bool_and(d.person IS NOT NULL)
 ORDER BY b.classes[1]
