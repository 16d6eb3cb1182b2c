-- When tables are refreshed, and the newest due time of each that is entered as a job already.
SELECT s.table_schema, s.table_name, s.cron, s.zone, s.stored_at, s.stored_by,
       (SELECT max(j.due_at)
          FROM dbanon.job AS j
         WHERE j.table_schema = s.table_schema
           AND j.table_name = s.table_name) AS entered
  FROM dbanon.schedule AS s
 ORDER BY s.table_schema, s.table_name
