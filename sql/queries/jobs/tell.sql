-- Tell the workers, at COMMIT, that there is something to look at.
SELECT pg_notify('dbanon_job', '')
