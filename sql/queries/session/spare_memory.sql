-- Let hash tables of the next statements begin small, and return how much room they had.
WITH memory (so_far) AS MATERIALIZED (
    SELECT current_setting('work_mem')
),
spared (now) AS MATERIALIZED (
    SELECT set_config('work_mem', '1MB', true)
      FROM memory
)
SELECT m.so_far
  FROM memory AS m
 CROSS JOIN spared
