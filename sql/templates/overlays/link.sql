-- Add the persons of one table of a dataset, with how many rows each has if that counts.
INSERT INTO {linked} (part, person, class)
SELECT {part}, r.person, concat_ws(':', {part}, min(r.shown), {times})
  FROM {rows} AS r
 GROUP BY r.person
