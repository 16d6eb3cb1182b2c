-- Let the next release have a number that no data of an earlier one bears.
SELECT setval(pg_get_serial_sequence('dbanon.release', 'release_id')::regclass, max(number)::bigint)
  FROM (
    SELECT substring(c.relname FROM '[0-9]+$')::numeric
      FROM pg_class AS c
     WHERE c.relnamespace = to_regnamespace('dbanon_data')
    UNION ALL
    SELECT r.release_id
      FROM dbanon.release AS r
  ) AS used (number)
 WHERE number < 2 ^ 53
HAVING max(number) > coalesce(
    pg_sequence_last_value(pg_get_serial_sequence('dbanon.release', 'release_id')::regclass), 0
)
