-- What is remembered of some releases, a row for each that a person had when it changed; class 0 is of
-- one who is gone. relation: its first release of these, which stands for it; shown, held: what tells the classes and
-- the values of all rows of the person; place: which row of the person it is.
CREATE TEMPORARY TABLE history_entries ON COMMIT DROP AS
SELECT h.release_id, h.relation, e.person, e.class, e.value_id,
       e.class AS shown, e.value_id::bigint AS held, 1::bigint AS place
  FROM unnest(%(releases)s::bigint[], %(first)s::bigint[]) AS h (release_id, relation)
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
