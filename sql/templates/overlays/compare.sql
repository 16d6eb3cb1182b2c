-- Compare two releases as a reader of both can: how many persons are in the classes of so few, in
-- both or in one and not the other.
SELECT coalesce(sum(c.persons), 0)::bigint, min(c.persons),
       coalesce(sum(c.persons) FILTER (WHERE c.persons < {k}), 0)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.is_in_both), 0)::bigint
  FROM (SELECT count(*) AS persons, bool_and(a.shown IS NOT NULL AND b.shown IS NOT NULL) AS is_in_both
          FROM (SELECT s.person, s.shown FROM {before} AS s WHERE s.place = 1) AS a
          FULL JOIN (SELECT s.person, s.shown
                       FROM {now} AS s
                      WHERE s.place = 1) AS b USING (person)
         GROUP BY a.shown, b.shown) AS c
