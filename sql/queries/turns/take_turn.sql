-- Change the row of a table: a snapshot that is older than the last publication then fails here.
UPDATE dbanon.publishing
   SET turns = turns + 1
 WHERE source = %s
