-- Forget the jobs of a table that ended before the last thousand.
DELETE FROM dbanon.job AS j
 WHERE j.table_schema = %(schema)s
   AND j.table_name = %(name)s
   AND j.state IN ('done', 'failed')
   AND j.job_id <= (SELECT o.job_id
                      FROM dbanon.job AS o
                     WHERE o.table_schema = %(schema)s
                       AND o.table_name = %(name)s
                     ORDER BY o.job_id DESC
                    OFFSET 1000
                     LIMIT 1)
