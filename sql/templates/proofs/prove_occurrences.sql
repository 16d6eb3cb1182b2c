-- Count the persons of every published class who have equally many rows; one whose rows are in several
-- classes is like nobody else, and is not counted.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.members), 0)::bigint
  FROM (SELECT count(*) FILTER (WHERE p.members = p.owned) AS persons, sum(p.members) AS members
          FROM (SELECT {columns}, count(*) AS members,
                       sum(count(*)) OVER (PARTITION BY s.{subject}) AS owned
                  FROM {source} AS s
                  JOIN {rows} AS r ON {join}
                  JOIN {groups} AS g ON g.group_id = r.group_id
                 GROUP BY {columns}, s.{subject}) AS p
         GROUP BY {classes}, p.members) AS c
