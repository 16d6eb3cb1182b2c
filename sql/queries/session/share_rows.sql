-- Let the next statement have workers compute what each of its rows takes long for: by default, PostgreSQL
-- expects that to hand a row on takes longer.
SELECT set_config('parallel_tuple_cost', '0.001', true)
