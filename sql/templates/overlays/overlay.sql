-- What was published of the persons of a release, with the cell of each in the place of its class.
CREATE TEMPORARY TABLE {overlay} ON COMMIT DROP AS
WITH value AS MATERIALIZED (
    SELECT v.value_id{columns}
      FROM dbanon.history_value AS v
     WHERE v.table_schema = {table_schema}
       AND v.table_name = {table_name}
)
SELECT c.{known_as} AS {cell}, s.person AS {person}{names}
  FROM {state} AS s
  JOIN {cells} AS c ON c.person = s.person
  JOIN value AS u ON u.value_id = s.value_id
