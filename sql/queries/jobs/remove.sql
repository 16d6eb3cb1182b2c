-- Remove the schedule of a table, and the job of it that has not begun.
WITH waiting AS (
    DELETE FROM dbanon.job AS j
     WHERE j.table_schema = %(schema)s
       AND j.table_name = %(name)s
       AND j.state = 'waiting'
       AND j.due_at IS NOT NULL
)
DELETE FROM dbanon.schedule AS s
 WHERE s.table_schema = %(schema)s
   AND s.table_name = %(name)s
