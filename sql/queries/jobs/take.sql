-- Take a job: one that waits, and whose table no other job is run for; else one whose worker is lost,
-- once nobody publishes its table any more. The lock tells that a job has a worker, which gets a
-- moment to take it.
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
