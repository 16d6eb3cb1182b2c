-- The persons of some parts of classes, with the values that are published of them, in an order that
-- nobody knows who has no key of their hashes.
SELECT t.part, s.person IS NULL AS is_gone, b.person,
       ARRAY(SELECT (v.value -> q.name)::text
               FROM unnest(%(columns)s::text[]) WITH ORDINALITY AS q (name, place)
              ORDER BY q.place) AS values
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_before AS b ON b.classes[1] = t.class
  JOIN pg_temp.history_cells AS c ON c.person = b.person AND c.cell = t.cell
  JOIN dbanon.history_value AS v ON v.value_id = b.value_ids[1]
  LEFT JOIN pg_temp.history_standing AS s ON s.person = b.person
 WHERE t.part = ANY (%(parts)s)
 ORDER BY t.part, b.person
