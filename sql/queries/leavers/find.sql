-- Since when those are gone whom a relation shows: since the first refresh that missed them. A moment
-- that is yet to come was told by a clock that has been set back.
CREATE TEMPORARY TABLE history_missed ON COMMIT DROP AS
SELECT s.person,
       least(coalesce(min(m.missed_at), now()), now()) AS missed_at,
       coalesce(min(m.missed_at) < now() - %(deadline)s::interval, false) AS is_overdue
  FROM pg_temp.history_standing AS s
  LEFT JOIN (SELECT l.missed_at, u.person
               FROM dbanon.history_leaver AS l
              CROSS JOIN LATERAL unnest(l.persons) AS u (person)
              WHERE l.relation_schema = %(schema)s
                AND l.relation_name = %(name)s) AS m ON m.person = s.person
 WHERE s.place IS NULL
 GROUP BY s.person
