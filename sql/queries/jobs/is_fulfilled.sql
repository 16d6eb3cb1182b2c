-- Whether all that is served of a table was published since its job was first begun.
SELECT coalesce(bool_and(r.release_id > j.begun_after AND r.created_at >= j.begun_at), false)
  FROM dbanon.job AS j
  JOIN dbanon.release AS r
    ON r.table_schema = j.table_schema
   AND r.table_name = j.table_name
   AND r.served
 WHERE j.job_id = %(job)s
