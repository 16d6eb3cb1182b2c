-- When tables are refreshed.
SELECT s.table_schema, s.table_name, s.cron, s.zone, s.stored_at, s.stored_by
  FROM dbanon.schedule AS s
 ORDER BY s.table_schema, s.table_name
