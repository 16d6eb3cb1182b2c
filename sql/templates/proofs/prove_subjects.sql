-- Count the persons of every published class; only who reads the private tables can.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.members), 0)::bigint
  FROM (SELECT count(DISTINCT s.{subject}) AS persons, count(*) AS members
          FROM {source} AS s
          JOIN {rows} AS r ON {join}
          JOIN {groups} AS g ON g.group_id = r.group_id
         GROUP BY {columns}) AS c
