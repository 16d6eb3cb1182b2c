-- Take the rows of those who left a class, and no others, out of a copy: as many of its rows with their
-- values as they had.
WITH departed AS MATERIALIZED (
    SELECT d.class, {remembered} AS value, count(*) AS rows
      FROM pg_temp.history_departed AS d
      JOIN dbanon.history_value AS v ON v.value_id = d.value_id
     GROUP BY 1, 2
),
present AS MATERIALIZED (
    SELECT s.ctid AS place, c.class, {values} AS value
      FROM (SELECT o.class, unnest(o.places) AS place FROM pg_temp.history_copied AS o) AS c
      JOIN ONLY {release} AS s ON s.ctid = c.place
)
DELETE FROM ONLY {release} AS t
 USING (SELECT n.place, row_number() OVER (PARTITION BY n.class, n.value) AS number, d.rows
          FROM present AS n
          JOIN departed AS d ON d.class = n.class AND d.value = n.value) AS c
 WHERE t.ctid = c.place
   AND c.number <= c.rows
