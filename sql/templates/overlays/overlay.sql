-- What was published of the persons of a release, with the cell of each in the place of its class. Values
-- are found by their numbers: how many there are of a table, no planner knows.
CREATE TEMPORARY TABLE {overlay} ON COMMIT DROP AS
WITH value AS MATERIALIZED (
    SELECT v.value_id{columns}
      FROM (SELECT DISTINCT s.value_id FROM {state} AS s) AS d
      JOIN dbanon.history_value AS v ON v.value_id = d.value_id
)
SELECT c.{known_as} AS {cell}, s.person AS {person}{names}
  FROM {state} AS s
  JOIN {cells} AS c ON c.person = s.person
  JOIN value AS u ON u.value_id = s.value_id
