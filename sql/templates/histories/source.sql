-- Who was read, by keyed hash, in which place and with which values. A value that was never published has
-- no number. Nothing is looked up row by row: how many there are, no planner knows.
CREATE TEMPORARY TABLE history_source ON COMMIT DROP AS
WITH valued AS MATERIALIZED (
    SELECT o.code, v.value_id
      FROM {codes} AS o
      LEFT JOIN dbanon.history_value AS v
        ON v.table_schema = {table_schema}
       AND v.table_name = {table_name}
       AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
)
SELECT {person} AS person, l.place, v.value_id
  FROM {read} AS l
  JOIN dbanon.history_key AS k ON k.key_id = {key}
  JOIN valued AS v ON v.code = l.code
