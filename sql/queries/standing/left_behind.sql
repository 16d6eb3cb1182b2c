-- The places of those who stay of parts that go, by part, if they have the values that were published.
SELECT d.part, s.places
  FROM pg_temp.history_departed AS d
  JOIN pg_temp.history_standing AS s ON s.person = d.person
 WHERE d.part = ANY (%(parts)s)
   AND s.value_ids = d.value_ids
 ORDER BY s.places
