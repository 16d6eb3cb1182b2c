-- How the jobs of each table stand: how many wait and run, when the next one may be tried again, when
-- one succeeded last, and what became of the one that ended last.
SELECT j.table_schema,
       j.table_name,
       count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
       count(*) FILTER (WHERE j.state = 'running') AS running,
       min(j.not_before) FILTER (WHERE j.state = 'waiting') AS not_before,
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
