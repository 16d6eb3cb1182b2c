-- Those who stay of some classes, each with the class and with the values that were published.
SELECT s.place, b.classes[1], v.value
  FROM pg_temp.history_standing AS s
  JOIN pg_temp.history_before AS b ON b.person = s.person
  JOIN dbanon.history_value AS v ON v.value_id = b.value_ids[1]
 WHERE b.classes && %(classes)s::bigint[]
 ORDER BY s.place
