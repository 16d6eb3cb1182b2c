-- The columns of which values of single rows were published of a table.
SELECT DISTINCT j.key
  FROM dbanon.history_value AS v
 CROSS JOIN LATERAL jsonb_object_keys(v.value) AS j (key)
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
