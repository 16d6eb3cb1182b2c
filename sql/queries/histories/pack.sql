-- Keep what a release changed, in an order that tells nothing of the source's. Of a temporary table, one
-- process reads the rows as they were sorted.
INSERT INTO dbanon.history_member (release_id, part, persons, classes, value_ids)
SELECT %(release)s, (o.place - 1) / 10000 AS part,
       array_agg(o.person), array_agg(o.class), array_agg(o.value_id)
  FROM (SELECT row_number() OVER (ORDER BY c.person, c.class, c.value_id) AS place,
               c.person, c.class, c.value_id
          FROM pg_temp.history_changes AS c) AS o
 GROUP BY part
 UNION ALL
SELECT %(release)s, 0, '{}', '{}', '{}'  -- a release that changed nothing is remembered, too
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_changes)
