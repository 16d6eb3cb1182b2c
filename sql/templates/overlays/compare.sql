-- Compare releases with the newest, in "now", as a reader of both can: how many persons are in the classes
-- of so few, in both or in one and not the other.
SELECT r.release_id, p.persons, p.smallest, p.below, p.in_both
  FROM {releases}
 CROSS JOIN LATERAL (
        SELECT coalesce(sum(c.persons), 0)::bigint AS persons, min(c.persons) AS smallest,
               coalesce(sum(c.persons) FILTER (WHERE c.persons < r.k), 0)::bigint AS below,
               coalesce(sum(c.persons) FILTER (WHERE c.is_in_both), 0)::bigint AS in_both
          FROM (SELECT count(*) AS persons,
                       bool_and(a.shown IS NOT NULL AND b.shown IS NOT NULL) AS is_in_both
                  FROM (SELECT s.person, s.shown FROM ({before}) AS s WHERE s.place = 1) AS a
                  FULL JOIN (SELECT s.person, s.shown
                               FROM {now} AS s
                              WHERE s.place = 1) AS b USING (person)
                 GROUP BY a.shown, b.shown) AS c) AS p
