-- Lock a job for as long as it is run, unless another worker has taken it over.
SELECT
  FROM dbanon.job AS j
 WHERE j.job_id = %(job)s
   AND j.attempts = %(attempts)s
   AND j.state = 'running'
   FOR UPDATE SKIP LOCKED
