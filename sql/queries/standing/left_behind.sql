-- The places of those who stay of parts that go, by part, if they have the values that were published.
SELECT d.part, s.place
  FROM pg_temp.history_departed AS d
  JOIN pg_temp.history_source AS s ON s.person = d.person
 WHERE d.part = ANY (%(parts)s)
   AND s.value_id = d.value_id
 ORDER BY s.place
