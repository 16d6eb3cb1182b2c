-- Wait until no publication holds the row of a table.
SELECT
  FROM dbanon.publishing
 WHERE source = %s
   FOR UPDATE
