-- The classes of whom was not read any more, where there are so many of them.
SELECT u.class
  FROM pg_temp.history_before AS b
 CROSS JOIN LATERAL unnest(b.classes) AS u (class)
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_standing AS s WHERE s.person = b.person)
 GROUP BY u.class
HAVING count(*) >= %(leavers)s
