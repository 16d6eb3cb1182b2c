-- Keep since when those are gone whom a relation shows on, in an order that tells nothing of the source's.
INSERT INTO dbanon.history_leaver (relation_schema, relation_name, missed_at, persons)
SELECT %(schema)s, %(name)s, m.missed_at, array_agg(m.person ORDER BY m.person)
  FROM pg_temp.history_missed AS m
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = m.person)
 GROUP BY m.missed_at
    ON CONFLICT DO NOTHING
