-- The time by which jobs are due.
SELECT clock_timestamp()
