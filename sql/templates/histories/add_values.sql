-- Give a number to each combination of sensitive values that was not published of the table before.
INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)
SELECT {table_schema}, {table_name}, sha256(convert_to(c.value::text, 'UTF8')), c.value
  FROM {codes} AS c
    ON CONFLICT DO NOTHING
