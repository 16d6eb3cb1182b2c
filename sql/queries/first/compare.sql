-- Compare the first release of a series with itself, as others will be with it.
SELECT coalesce(sum(c.persons), 0)::bigint, min(c.persons)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.persons < %(k)s), 0)::bigint
  FROM (SELECT sum(o.persons) AS persons
          FROM pg_temp.history_counted AS o
         GROUP BY o.class) AS c
