-- How many persons a relation showed in a release.
SELECT count(*)
  FROM ({shown}) AS r
 WHERE r.place = 1
