-- Where the rows of those classes lie in a copy that are to lose some. The number of each class is worked
-- out once, of one of its rows; the others are found by a hash of what they show, then by all of it.
CREATE TEMPORARY TABLE history_copied ON COMMIT DROP AS
WITH class AS MATERIALIZED (
    SELECT {class} AS class, c.place
      FROM (SELECT {published} AS published, s.place
              FROM (SELECT {quasi}, min(s.ctid) AS place
                      FROM ONLY {release} AS s
                     GROUP BY {alike}) AS s) AS c
      JOIN dbanon.history_key AS k ON k.key_id = {key}
),
losing AS MATERIALIZED (
    SELECT c.class, hash_record_extended(ROW({quasi}), 0) AS hash, ROW({quasi})::text AS shown
      FROM class AS c
      JOIN ONLY {release} AS s ON s.ctid = c.place
     WHERE c.class IN (SELECT d.class FROM pg_temp.history_departed AS d)
),
candidate AS MATERIALIZED (
    SELECT l.class, l.shown, s.ctid AS place, ROW({quasi})::text AS own
      FROM ONLY {release} AS s
      JOIN losing AS l ON l.hash = hash_record_extended(ROW({quasi}), 0)
)
SELECT c.class, array_agg(c.place) AS places
  FROM candidate AS c
 WHERE c.own = c.shown
 GROUP BY c.class
