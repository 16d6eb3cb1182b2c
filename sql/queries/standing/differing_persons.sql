-- Of persons who may have several rows, who is published and was not read, and the rows of those who were
-- read and are not published. What others have got or lost meanwhile is not shown, and no difference.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT b.person, NULL::integer AS place, NULL::bigint AS value_id, b.class, b.value_id AS shown_id
  FROM pg_temp.history_before AS b
 WHERE b.place = 1
   AND NOT EXISTS (SELECT FROM pg_temp.history_source AS s WHERE s.person = b.person)
 UNION ALL
SELECT s.person, s.place, s.value_id, NULL, NULL
  FROM pg_temp.history_source AS s
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_before AS b WHERE b.person = s.person)
