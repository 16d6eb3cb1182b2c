-- Give a number to each combination of sensitive values that is published of the table for the first
-- time. Those that are known are left out beforehand: a conflict would use up a number.
INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)
SELECT {table_schema}, {table_name}, sha256(convert_to(c.value::text, 'UTF8')), c.value
  FROM {codes} AS c
 WHERE EXISTS (SELECT FROM {rows} AS r WHERE r.value = c.code)
   AND NOT EXISTS (SELECT
                     FROM dbanon.history_value AS v
                    WHERE v.table_schema = {table_schema}
                      AND v.table_name = {table_name}
                      AND v.digest = sha256(convert_to(c.value::text, 'UTF8')))
    ON CONFLICT DO NOTHING
