-- Find what is remembered of those whom a release may concern: who changed since the first release, and
-- who was only in that one, in a class of somebody whom this release changed. Nobody else shares a cell
-- with any of them.
CREATE TEMPORARY TABLE history_near ON COMMIT DROP AS
WITH shown AS MATERIALIZED (
    SELECT n.shown
      FROM pg_temp.history_newest AS n
     UNION
    SELECT e.shown
      FROM pg_temp.history_earlier AS e
),
near AS MATERIALIZED (
    SELECT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.release_id <> %(first)s
     UNION
    SELECT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.shown IN (SELECT s.shown FROM shown AS s)
)
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT n.person FROM near AS n)
