-- The members of the classes that somebody has left.
CREATE TEMPORARY TABLE history_members ON COMMIT DROP AS
SELECT b.person, b.class, b.value_id, g.person IS NOT NULL AS is_gone
  FROM pg_temp.history_before AS b
  LEFT JOIN (SELECT s.person
               FROM pg_temp.history_standing AS s
              WHERE s.place IS NULL) AS g ON g.person = b.person
 WHERE b.class IN (SELECT s.class
                     FROM pg_temp.history_standing AS s
                    WHERE s.place IS NULL)
