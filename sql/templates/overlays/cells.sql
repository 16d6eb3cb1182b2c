-- Put the persons in cells: those of one have been in the same classes of all releases, and their
-- values changed at the same times. Who changed once is told by when, and to which classes.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
WITH change AS (
    SELECT e.person, count(*) AS changes, min(e.release_id) AS release_id, min(e.shown) AS shown
      FROM {entries} AS e
     WHERE e.place = 1
     GROUP BY e.person
)
SELECT c.person, int8send(c.release_id) || int8send(c.shown) AS cell
  FROM change AS c
 WHERE c.changes = 1
 UNION ALL
SELECT s.person,
       sha256(convert_to(string_agg(format('%s:%s:%s', s.release_id, s.shown, s.is_same), ';'
                                    ORDER BY s.release_id), 'UTF8')) AS cell
  FROM (SELECT e.person, e.release_id, e.shown,
               e.held = lag(e.held) OVER (PARTITION BY e.relation, e.person
                                          ORDER BY e.release_id) AS is_same
          FROM {entries} AS e
         WHERE e.place = 1
           AND e.person IN (SELECT c.person FROM change AS c WHERE c.changes > 1)) AS s
 GROUP BY s.person
