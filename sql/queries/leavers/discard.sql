-- Discard what has changed of who is gone of a relation, and what it shows no more.
DELETE FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s
   AND NOT EXISTS (SELECT
                     FROM (SELECT m.missed_at, array_agg(m.person ORDER BY m.person) AS persons
                             FROM pg_temp.history_missed AS m
                            WHERE NOT EXISTS (SELECT
                                                FROM pg_temp.history_departed AS d
                                               WHERE d.person = m.person)
                            GROUP BY m.missed_at) AS n
                    WHERE n.missed_at = l.missed_at
                      AND n.persons = l.persons)
