-- Let a job wait to be tried again; an attempt that was broken off does not count. If it does for
-- another one from now on, no release before this does it.
UPDATE dbanon.job AS j
   SET state = %(state)s,
       attempts = j.attempts - %(uncounted)s,
       not_before = %(now)s::timestamptz + %(pause)s::interval,
       begun_at = CASE WHEN NOT %(merged)s THEN j.begun_at END,
       begun_after = CASE WHEN NOT %(merged)s THEN j.begun_after END,
       reason = %(reason)s
 WHERE j.job_id = %(job)s
