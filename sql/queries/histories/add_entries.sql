-- Add the persons whose class or values are not those of the relation's release before. One who is
-- gone has class 0.
INSERT INTO pg_temp.history_entries (release_id, relation, person, classes, value_ids)
SELECT %(release)s, c.relation, person, c.classes, c.value_ids
  FROM (SELECT person,
               array_agg(m.class ORDER BY m.class, m.value_id) AS classes,
               array_agg(m.value_id ORDER BY m.class, m.value_id) AS value_ids
          FROM pg_temp.history_present AS m
         GROUP BY person) AS n
  FULL JOIN (SELECT DISTINCT ON (e.person) e.person, e.classes, e.value_ids
               FROM pg_temp.history_entries AS e
              WHERE e.relation = format('%%I.%%I', %(view_schema)s::text, %(view_name)s::text)
              ORDER BY e.person, e.release_id DESC) AS b USING (person)
 CROSS JOIN LATERAL (
       SELECT format('%%I.%%I', %(view_schema)s::text, %(view_name)s::text),
              coalesce(n.classes, '{0}'), coalesce(n.value_ids, '{0}')
       ) AS c (relation, classes, value_ids)
 WHERE (c.classes, c.value_ids)
       IS DISTINCT FROM (coalesce(b.classes, '{0}'), coalesce(b.value_ids, '{0}'))
