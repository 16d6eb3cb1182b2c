-- Where the rows of those classes lie in a copy that are to lose some: one sort or hash by what classes show,
-- which keeps the places of all; the number of each class is worked out once.
CREATE TEMPORARY TABLE history_copied ON COMMIT DROP AS
SELECT n.class, n.places
  FROM (SELECT {class} AS class, c.places
          FROM (SELECT {published} AS published, s.places
                  FROM (SELECT {quasi}, array_agg(s.ctid) AS places
                          FROM ONLY {release} AS s
                         GROUP BY {alike}) AS s) AS c
          JOIN dbanon.history_key AS k ON k.key_id = {key}
        OFFSET 0) AS n
 WHERE n.class IN (SELECT d.class FROM pg_temp.history_departed AS d)
