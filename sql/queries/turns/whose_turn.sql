-- Which session holds the row of a table.
SELECT l.pid, a.usename::text
  FROM dbanon.publishing AS p
  JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = p.xmax AND l.granted
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE p.source = %s
