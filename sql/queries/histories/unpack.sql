-- What is remembered of some releases, a row for each person whose class or values changed.
CREATE TEMPORARY TABLE history_entries ON COMMIT DROP AS
SELECT h.release_id, format('%%I.%%I', h.relation_schema, h.relation_name) AS relation, e.person,
       array_agg(e.class ORDER BY e.class, e.value_id) AS classes,
       array_agg(e.value_id ORDER BY e.class, e.value_id) AS value_ids
  FROM dbanon.history AS h
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
 WHERE h.release_id = ANY (%(releases)s)
 GROUP BY h.release_id, h.relation_schema, h.relation_name, e.person
