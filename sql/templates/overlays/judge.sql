-- What cells achieve of a model by the values that each release shows. Values are found by their numbers:
-- how many there are of a table, no planner knows.
WITH value AS MATERIALIZED (
    SELECT v.value_id{columns}
      FROM (SELECT DISTINCT s.value_id FROM {among} AS s) AS d
      JOIN dbanon.history_value AS v ON v.value_id = d.value_id
)
SELECT r.release_id, j.*
  FROM {releases}
 CROSS JOIN LATERAL (
WITH overlay AS (
{overlay})
SELECT * FROM (
{judged}) AS found) AS j
