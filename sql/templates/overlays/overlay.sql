-- What was published of the persons of a release, with the cell of each in the place of its class.
SELECT c.{known_as} AS {cell}, s.person AS {person}{names}
  FROM ({shown}) AS s
  JOIN {cells} AS c ON c.person = s.person
  JOIN value AS u ON u.value_id = s.value_id
