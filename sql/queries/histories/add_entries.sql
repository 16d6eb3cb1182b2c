-- Add what a release changed to what is remembered of those before.
WITH changed AS (
    UPDATE pg_temp.history_entries AS e
       SET until = %(release)s
     WHERE e.relation = %(relation)s
       AND e.until IS NULL
       AND e.person IN (SELECT c.person FROM pg_temp.history_changes AS c)
)
INSERT INTO pg_temp.history_entries
    (release_id, relation, person, class, value_id, shown, held, place)
SELECT %(release)s, %(relation)s, c.person, c.class, c.value_id, c.class, c.value_id, 1
  FROM pg_temp.history_changes AS c
