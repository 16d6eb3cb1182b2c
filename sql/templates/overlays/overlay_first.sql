-- What the first release of a series shows of its persons, with their class: that is their cell.
CREATE TEMPORARY VIEW {overlay} AS
WITH value AS MATERIALIZED (
    SELECT v.value_id{columns}
      FROM (SELECT DISTINCT o.value_id FROM pg_temp.history_counted AS o) AS d
      JOIN dbanon.history_value AS v ON v.value_id = d.value_id
)
SELECT e.class AS {cell}, e.person AS {person}{names}
  FROM pg_temp.history_entries AS e
  JOIN value AS u ON u.value_id = e.value_id
