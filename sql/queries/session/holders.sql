-- Which sessions hold a lock on one of the relations, and as which role; a prepared transaction
-- has no process.
SELECT DISTINCT l.pid, coalesce(a.usename::text, '')
  FROM pg_locks AS l
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'relation'
   AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND l.relation = ANY (%s::oid[])
   AND l.granted
   AND l.pid IS DISTINCT FROM pg_backend_pid()
 ORDER BY l.pid
