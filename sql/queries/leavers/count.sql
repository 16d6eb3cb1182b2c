-- How many are gone whom a relation shows, how many of them for longer than they may be, and since when
-- the first of them are.
SELECT coalesce(sum(cardinality(l.persons)), 0)::bigint,
       coalesce(sum(cardinality(l.persons))
                FILTER (WHERE l.missed_at < now() - %(deadline)s::interval), 0)::bigint,
       min(l.missed_at)
  FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s
