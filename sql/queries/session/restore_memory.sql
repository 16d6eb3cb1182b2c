-- Let hash tables have the room again that they had.
SELECT set_config('work_mem', %s, true)
