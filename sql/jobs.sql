-- Schedules, jobs and the workers that share them.

-- name: end
-- Record the result of a job.
UPDATE dbanon.job AS j
   SET state = %(state)s,
       result = %(result)s,
       reason = %(reason)s,
       not_before = NULL,
       ended_at = %(now)s
 WHERE j.job_id = %(job)s

-- name: enter_due
-- Create a job for a due time. A waiting job of the table is used for both, and earlier releases do not complete it.
WITH entered AS (
    INSERT INTO dbanon.job (table_schema, table_name, due_at, state, result, entered_at, ended_at)
    SELECT %(schema)s,
           %(name)s,
           %(due)s::timestamptz,
           CASE WHEN w.waits THEN 'done' ELSE 'waiting' END,
           CASE WHEN w.waits THEN 'merged' END,
           %(now)s::timestamptz,
           CASE WHEN w.waits THEN %(now)s::timestamptz END
      FROM (SELECT EXISTS (SELECT
                             FROM dbanon.job AS j
                            WHERE j.table_schema = %(schema)s
                              AND j.table_name = %(name)s
                              AND j.state = 'waiting')) AS w (waits)
    ON CONFLICT DO NOTHING
    RETURNING table_schema, table_name
)
UPDATE dbanon.job AS j
   SET begun_at = NULL,
       begun_after = NULL
 WHERE j.job_id = (SELECT w.job_id
                     FROM entered AS e
                     JOIN dbanon.job AS w
                       ON w.table_schema = e.table_schema
                      AND w.table_name = e.table_name
                    WHERE w.state = 'waiting'
                      FOR UPDATE OF w SKIP LOCKED)

-- name: hold
-- Lock a job while it runs, unless another worker has taken it over.
SELECT
  FROM dbanon.job AS j
 WHERE j.job_id = %(job)s
   AND j.attempts = %(attempts)s
   AND j.state = 'running'
   FOR UPDATE

-- name: job_counts
-- The job counts of each table, the next start, the last success, and the result of the last job.
SELECT j.table_schema,
       j.table_name,
       count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
       count(*) FILTER (WHERE j.state = 'running') AS running,
       min(j.not_before) FILTER (WHERE j.state IN ('waiting', 'running')) AS not_before,
       max(j.ended_at) FILTER (WHERE j.result IN ('refreshed', 'unchanged')) AS succeeded_at,
       (array_agg(j.state ORDER BY j.job_id DESC)
            FILTER (WHERE j.result IS DISTINCT FROM 'merged' AND j.begun_at IS NOT NULL))[1] AS state,
       (array_agg(j.result ORDER BY j.job_id DESC)
            FILTER (WHERE j.result IS DISTINCT FROM 'merged' AND j.begun_at IS NOT NULL))[1] AS result,
       (array_agg(j.reason ORDER BY j.job_id DESC)
            FILTER (WHERE j.result IS DISTINCT FROM 'merged' AND j.begun_at IS NOT NULL))[1] AS reason,
       (array_agg(j.ended_at ORDER BY j.job_id DESC)
            FILTER (WHERE j.result IS DISTINCT FROM 'merged' AND j.begun_at IS NOT NULL))[1] AS ended_at
  FROM dbanon.job AS j
 GROUP BY j.table_schema, j.table_name
 ORDER BY j.table_schema, j.table_name

-- name: listen
-- Listen for new jobs and schedules.
LISTEN dbanon_job

-- name: merge
-- Let a job also do the waiting one of its table.
UPDATE dbanon.job AS w
   SET state = 'done',
       result = 'merged',
       ended_at = %(now)s
  FROM dbanon.job AS j
 WHERE j.job_id = %(job)s
   AND w.table_schema = j.table_schema
   AND w.table_name = j.table_name
   AND w.state = 'waiting'

-- name: now
-- The time for comparing due times.
SELECT clock_timestamp()

-- name: prune
-- Delete the jobs of a table before the last thousand that ended, except that of the last due time, which would
-- be created again.
DELETE FROM dbanon.job AS j
 WHERE j.table_schema = %(schema)s
   AND j.table_name = %(name)s
   AND j.state IN ('done', 'failed')
   AND j.job_id <= (SELECT o.job_id
                      FROM dbanon.job AS o
                     WHERE o.table_schema = %(schema)s
                       AND o.table_name = %(name)s
                     ORDER BY o.job_id DESC
                    OFFSET 1000
                     LIMIT 1)
   AND (j.due_at IS NULL
        OR j.due_at < (SELECT max(o.due_at)
                         FROM dbanon.job AS o
                        WHERE o.table_schema = %(schema)s
                          AND o.table_name = %(name)s))

-- name: put_back
-- Put a job back for another attempt; an interrupted attempt does not count. If the job now also does another
-- one, earlier releases do not complete it.
UPDATE dbanon.job AS j
   SET state = %(state)s,
       attempts = j.attempts - %(uncounted)s,
       not_before = %(now)s::timestamptz + %(pause)s::interval,
       begun_at = CASE WHEN NOT %(merged)s THEN j.begun_at END,
       begun_after = CASE WHEN NOT %(merged)s THEN j.begun_after END,
       reason = %(reason)s
 WHERE j.job_id = %(job)s

-- name: remove
-- Remove the schedule of a table, and its waiting job.
WITH waiting AS (
    DELETE FROM dbanon.job AS j
     WHERE j.table_schema = %(schema)s
       AND j.table_name = %(name)s
       AND j.state = 'waiting'
       AND j.due_at IS NOT NULL
)
DELETE FROM dbanon.schedule AS s
 WHERE s.table_schema = %(schema)s
   AND s.table_name = %(name)s

-- name: schedules
-- The schedules, with the newest due time of each that has a job.
SELECT s.table_schema, s.table_name, s.cron, s.zone, s.stored_at, s.stored_by,
       (SELECT max(j.due_at)
          FROM dbanon.job AS j
         WHERE j.table_schema = s.table_schema
           AND j.table_name = s.table_name) AS entered
  FROM dbanon.schedule AS s
 ORDER BY s.table_schema, s.table_name

-- name: store
-- Add or replace the schedule of a table.
INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone, stored_at)
VALUES (%(schema)s, %(name)s, %(cron)s, %(zone)s, %(now)s)
ON CONFLICT (table_schema, table_name) DO UPDATE
   SET cron = excluded.cron,
       zone = excluded.zone,
       stored_at = excluded.stored_at,
       stored_by = session_user

-- name: take
-- Take a waiting job of a table without a running one; otherwise one with a lost worker, if the table is not
-- being published. A lock shows that a job has a worker, which gets some seconds to take it. A pause beyond the
-- longest one comes from a clock that was set back.
--
-- A pause that is longer than any is of a clock that has jumped back since.
WITH taken AS MATERIALIZED (
    SELECT j.job_id
      FROM dbanon.job AS j
     WHERE (j.not_before IS NULL
            OR j.not_before <= %(now)s
            OR j.not_before > %(now)s::timestamptz + %(longest)s::interval)
       AND ((j.state = 'waiting'
             AND NOT EXISTS (SELECT
                               FROM dbanon.job AS r
                              WHERE r.table_schema = j.table_schema
                                AND r.table_name = j.table_name
                                AND r.state = 'running'))
            OR (j.state = 'running'
                AND NOT EXISTS (SELECT
                                  FROM dbanon.publishing AS p
                                  JOIN pg_class AS c ON c.oid = p.source
                                  JOIN pg_namespace AS n ON n.oid = c.relnamespace
                                  JOIN pg_locks AS l
                                    ON l.locktype = 'transactionid'
                                   AND l.transactionid = p.xmax
                                   AND l.granted
                                 WHERE n.nspname = j.table_schema
                                   AND c.relname = j.table_name)))
     ORDER BY j.state = 'running', j.job_id
     LIMIT 1
       FOR UPDATE OF j SKIP LOCKED
)
UPDATE dbanon.job AS j
   SET state = 'running',
       attempts = least(j.attempts + 1, 100),
       not_before = %(now)s::timestamptz + %(moment)s::interval,
       begun_at = coalesce(j.begun_at, %(now)s),
       begun_after = coalesce(j.begun_after, (SELECT coalesce(max(r.release_id), 0)
                                                FROM dbanon.release AS r
                                               WHERE r.table_schema = j.table_schema
                                                 AND r.table_name = j.table_name))
  FROM taken AS t
 WHERE j.job_id = t.job_id
RETURNING j.job_id, j.table_schema, j.table_name, j.due_at, j.attempts, j.begun_after, j.begun_at

-- name: tell
-- Notify the workers, at COMMIT.
SELECT pg_notify('dbanon_job', '')
