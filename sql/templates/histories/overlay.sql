-- What was published of the persons of a release, with the cell of each in the place of its class.
CREATE TEMPORARY TABLE {overlay} ON COMMIT DROP AS
SELECT c.cell AS {cell}, s.person AS {person}{columns}
  FROM {state} AS s
  JOIN pg_temp.history_cells AS c ON c.person = s.person
 CROSS JOIN LATERAL unnest(s.value_ids) AS u (value_id)
  JOIN dbanon.history_value AS v ON v.value_id = u.value_id
