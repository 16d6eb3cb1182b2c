-- What the numbers of sensitive values stand for.
SELECT v.value_id, v.value::text
  FROM dbanon.history_value AS v
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
