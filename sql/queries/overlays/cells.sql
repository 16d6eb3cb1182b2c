-- Put the persons in cells: those of one have been in the same classes of all releases, and their
-- values changed at the same times.
CREATE TEMPORARY TABLE history_cells ON COMMIT DROP AS
SELECT s.person,
       sha256(convert_to(string_agg(format('%s:%s:%s', s.release_id, s.classes, s.is_same), ';'
                                    ORDER BY s.release_id), 'UTF8')) AS cell
  FROM (SELECT e.person, e.release_id, e.classes,
               e.value_ids = lag(e.value_ids) OVER (PARTITION BY e.relation, e.person
                                                    ORDER BY e.release_id) AS is_same
          FROM pg_temp.history_entries AS e) AS s
 GROUP BY s.person
