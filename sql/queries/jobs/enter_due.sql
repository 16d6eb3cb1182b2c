-- Enter a time that is due as one job; while another job of the table waits, that one does for both,
-- and no release before this does it.
WITH entered AS (
    INSERT INTO dbanon.job (table_schema, table_name, due_at, state, result, entered_at, ended_at)
    SELECT %(schema)s,
           %(name)s,
           %(due)s::timestamptz,
           CASE WHEN w.waits THEN 'done' ELSE 'waiting' END,
           CASE WHEN w.waits THEN 'merged' END,
           %(now)s::timestamptz,
           CASE WHEN w.waits THEN %(now)s::timestamptz END
      FROM (SELECT EXISTS (SELECT
                             FROM dbanon.job AS j
                            WHERE j.table_schema = %(schema)s
                              AND j.table_name = %(name)s
                              AND j.state = 'waiting')) AS w (waits)
    ON CONFLICT DO NOTHING
    RETURNING table_schema, table_name
)
UPDATE dbanon.job AS j
   SET begun_at = NULL,
       begun_after = NULL
 WHERE j.job_id = (SELECT w.job_id
                     FROM entered AS e
                     JOIN dbanon.job AS w
                       ON w.table_schema = e.table_schema
                      AND w.table_name = e.table_name
                    WHERE w.state = 'waiting'
                      FOR UPDATE OF w SKIP LOCKED)
