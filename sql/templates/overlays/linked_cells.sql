-- Put the persons of some tables in cells: those of one are shown alike in each.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
SELECT l.person, array_agg(l.class ORDER BY l.class)::text AS cell
  FROM {linked} AS l
 WHERE l.part = ANY ({parts}::integer[])
 GROUP BY l.person
