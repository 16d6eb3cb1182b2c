-- Keep what a release changed, in an order that tells nothing of the source's.
INSERT INTO dbanon.history_member (release_id, part, persons, classes, value_ids)
SELECT %(release)s, p.part,
       coalesce(array_agg(p.person ORDER BY p.place) FILTER (WHERE p.person IS NOT NULL), '{}'),
       coalesce(array_agg(p.class ORDER BY p.place) FILTER (WHERE p.person IS NOT NULL), '{}'),
       coalesce(array_agg(p.value_id ORDER BY p.place) FILTER (WHERE p.person IS NOT NULL), '{}')
  FROM (SELECT o.place, (o.place - 1) / 10000 AS part, o.person, o.class, o.value_id
          FROM (SELECT row_number() OVER (ORDER BY c.person, c.class, c.value_id) AS place,
                       c.person, c.class, c.value_id
                  FROM pg_temp.history_changes AS c) AS o
         UNION ALL
        SELECT 0, 0, NULL, NULL, NULL) AS p  -- a release that changed nothing is remembered, too
 GROUP BY p.part
