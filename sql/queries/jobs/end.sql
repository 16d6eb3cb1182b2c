-- Enter what became of a job.
UPDATE dbanon.job AS j
   SET state = %(state)s,
       result = %(result)s,
       reason = %(reason)s,
       ended_at = %(now)s
 WHERE j.job_id = %(job)s
