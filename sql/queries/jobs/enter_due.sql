-- Enter a time that is due as one job; while another job of the table waits, that one does for both.
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
