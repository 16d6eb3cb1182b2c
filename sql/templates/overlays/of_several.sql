-- The releases that show somebody in several rows.
SELECT r.release_id
  FROM {releases}
 WHERE EXISTS (SELECT FROM ({shown}) AS s WHERE s.place > 1)
