-- Add whom a copy still shows as it did in the release before, but for those who departed.
INSERT INTO pg_temp.history_present (person, class, value_id)
SELECT s.person, u.class, u.value_id
  FROM (SELECT DISTINCT ON (e.person) e.person, e.classes, e.value_ids
          FROM pg_temp.history_entries AS e
         WHERE e.relation = format('%%I.%%I', %(view_schema)s::text, %(view_name)s::text)
         ORDER BY e.person, e.release_id DESC) AS s
 CROSS JOIN LATERAL unnest(s.classes, s.value_ids) AS u (class, value_id)
 WHERE s.classes <> '{0}'
   AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = s.person)
