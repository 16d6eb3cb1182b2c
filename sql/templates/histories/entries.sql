-- What is remembered of some releases, a row for each that a person had when it changed; class 0 is of one
-- who is gone. relation: its first release of these, which stands for it; until: the release that changed
-- the rows of the person next, NULL of those that still hold.
SELECT h.release_id, h.relation, e.person, e.class, e.value_id, c.until
  FROM unnest({releases}::bigint[], {first}::bigint[]) AS h (release_id, relation)
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
  LEFT JOIN (
        SELECT d.person, d.relation, d.release_id AS until,
               lag(d.release_id, 1, d.relation)
                   OVER (PARTITION BY d.person, d.relation ORDER BY d.release_id) AS since
          FROM (SELECT DISTINCT p.person, h.relation, h.release_id
                  FROM unnest({releases}::bigint[], {first}::bigint[]) AS h (release_id, relation)
                  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
                 CROSS JOIN LATERAL unnest(m.persons) AS p (person)
                 WHERE h.release_id <> h.relation) AS d) AS c
         ON c.person = e.person
        AND c.relation = h.relation
        AND c.since = h.release_id
