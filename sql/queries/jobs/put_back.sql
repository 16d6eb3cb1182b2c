-- Let a job wait to be tried again; an attempt that was broken off does not count.
UPDATE dbanon.job AS j
   SET state = 'waiting',
       attempts = j.attempts - %(uncounted)s,
       not_before = %(now)s::timestamptz + %(pause)s::interval,
       reason = %(reason)s
 WHERE j.job_id = %(job)s
