-- Whom the next release does not show any more: all of some parts of classes, of others those who left,
-- and who goes with them.
CREATE TEMPORARY TABLE history_departed ON COMMIT DROP AS
SELECT m.person, m.class, m.value_id, t.part, m.is_gone
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_members AS m ON m.class = t.class
  JOIN pg_temp.history_cells AS c ON c.person = m.person AND c.cell = t.cell
 WHERE t.part = ANY (%(whole)s)
    OR (t.part = ANY (%(left)s) AND (m.is_gone OR m.person = ANY (%(companions)s::uuid[])))
