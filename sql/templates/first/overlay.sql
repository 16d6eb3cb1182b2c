-- What the first release of a series shows of its persons, with their class: that is their cell.
SELECT e.class AS {cell}, e.person AS {person}{names}
  FROM pg_temp.history_entries AS e
  JOIN value AS u ON u.value_id = e.value_id
