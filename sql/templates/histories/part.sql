-- Take the rows of those who left a class, and no others, out of a copy: as many of its rows with their
-- values as they had. The number of each class is worked out once.
WITH departed AS MATERIALIZED (
    SELECT d.class, {remembered} AS value, count(*) AS rows
      FROM pg_temp.history_departed AS d
     CROSS JOIN LATERAL unnest(d.value_ids) AS u (value_id)
      JOIN dbanon.history_value AS v ON v.value_id = u.value_id
     GROUP BY 1, 2
),
class AS MATERIALIZED (
    SELECT c.published, {class} AS class
      FROM (SELECT DISTINCT ({published})::text AS published FROM ONLY {release} AS s) AS c
     CROSS JOIN dbanon.history_key AS k
     WHERE k.key_id = {key}
),
touched AS MATERIALIZED (
    SELECT c.published, c.class
      FROM class AS c
     WHERE c.class IN (SELECT d.class FROM departed AS d)
)
DELETE FROM ONLY {release} AS t
 USING (SELECT n.place, row_number() OVER (PARTITION BY n.class, n.value) AS number, d.rows
          FROM (SELECT s.ctid AS place, c.class, {values} AS value
                  FROM ONLY {release} AS s
                  JOIN touched AS c ON c.published = ({published})::text) AS n
          JOIN departed AS d ON d.class = n.class AND d.value = n.value) AS c
 WHERE t.ctid = c.place
   AND c.number <= c.rows
