-- The persons of some parts of classes, with the values that are published of them, in an order that
-- nobody knows who has no key of their hashes.
SELECT t.part, m.is_gone, m.person,
       ARRAY(SELECT (v.value -> q.name)::text
               FROM unnest(%(columns)s::text[]) WITH ORDINALITY AS q (name, place)
              ORDER BY q.place) AS values
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_members AS m ON m.class = t.class
  JOIN pg_temp.history_cells AS c ON c.person = m.person AND c.cell = t.cell
  JOIN dbanon.history_value AS v ON v.value_id = m.value_id
 WHERE t.part = ANY (%(parts)s)
 ORDER BY t.part, m.person
