-- Let each sort and hash table of this transaction have room for the rows of millions of persons.
SELECT set_config('work_mem', '256MB', true)
 WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('256MB')
