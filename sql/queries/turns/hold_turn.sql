-- Take the row of a table if nobody holds it.
SELECT
  FROM dbanon.publishing
 WHERE source = %s
   FOR UPDATE NOWAIT
