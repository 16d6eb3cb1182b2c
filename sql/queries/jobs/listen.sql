-- Be told when there is a new job, or a new schedule.
LISTEN dbanon_job
