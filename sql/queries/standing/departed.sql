-- Whom the next release does not show any more: all of some parts of classes, of others those who left,
-- and who goes with them.
CREATE TEMPORARY TABLE history_departed ON COMMIT DROP AS
SELECT b.person, b.classes[1] AS class, b.value_ids, t.part, s.person IS NULL AS is_gone
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_before AS b ON b.classes[1] = t.class
  JOIN pg_temp.history_cells AS c ON c.person = b.person AND c.cell = t.cell
  LEFT JOIN pg_temp.history_standing AS s ON s.person = b.person
 WHERE t.part = ANY (%(whole)s)
    OR (t.part = ANY (%(left)s) AND (s.person IS NULL OR b.person = ANY (%(companions)s::uuid[])))
