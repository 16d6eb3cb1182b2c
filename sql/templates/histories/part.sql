-- Take the rows of those who left a class, and no others, out of a copy: as many of its rows with their
-- values as they had.
WITH departed AS (
    SELECT d.class, {remembered} AS value, count(*) AS rows
      FROM pg_temp.history_departed AS d
     CROSS JOIN LATERAL unnest(d.value_ids) AS u (value_id)
      JOIN dbanon.history_value AS v ON v.value_id = u.value_id
     GROUP BY 1, 2
)
DELETE FROM ONLY {release} AS t
 USING (SELECT n.place, row_number() OVER (PARTITION BY n.class, n.value) AS number, d.rows
          FROM (SELECT s.ctid AS place, {class} AS class, {published} AS value
                  FROM ONLY {release} AS s
                  JOIN dbanon.history_key AS k ON k.key_id = {key}) AS n
          JOIN departed AS d ON d.class = n.class AND d.value = n.value) AS c
 WHERE t.ctid = c.place
   AND c.number <= c.rows
