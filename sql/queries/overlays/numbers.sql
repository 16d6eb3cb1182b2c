-- The columns all of whose remembered values are numbers.
SELECT j.key
  FROM dbanon.history_value AS v
 CROSS JOIN LATERAL jsonb_each(v.value) AS j
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
 GROUP BY j.key
HAVING bool_and(jsonb_typeof(j.value) IN ('number', 'null'))
