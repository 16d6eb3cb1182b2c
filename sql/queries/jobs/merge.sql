-- Let a job do for the one of its table that waits.
UPDATE dbanon.job AS w
   SET state = 'done',
       result = 'merged',
       ended_at = %(now)s
  FROM dbanon.job AS j
 WHERE j.job_id = %(job)s
   AND w.table_schema = j.table_schema
   AND w.table_name = j.table_name
   AND w.state = 'waiting'
