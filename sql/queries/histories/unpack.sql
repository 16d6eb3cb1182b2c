-- What is remembered of some releases, a row for each that a person had when it changed; class 0 is of
-- one who is gone. series: the first release of the relation; shown, held: what tells the classes and
-- the values of all rows of the person; place: which row of the person it is.
CREATE TEMPORARY TABLE history_entries ON COMMIT DROP AS
SELECT h.release_id, h.series, e.person, e.class, e.value_id,
       e.class AS shown, e.value_id::bigint AS held, 1::bigint AS place
  FROM unnest(%(releases)s::bigint[], %(series)s::bigint[]) AS h (release_id, series)
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
