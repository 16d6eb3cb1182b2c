-- Compare the values of releases with those of the newest, in "now": what a class shows of a column in one
-- may be less in the other, and somebody who was in both has one of the values of both. shown: all that a
-- release shows of the classes of the persons in "before". Each step is joined to the next alone: to join
-- the values first, of all classes with all, would take long. Values are found by their numbers: how many
-- there are of a table, no planner knows.
WITH coded AS MATERIALIZED (
    SELECT c.name, c.value_id, dense_rank() OVER (PARTITION BY c.name ORDER BY c.value) AS code
      FROM (SELECT n.name, v.value_id, v.value -> n.name AS value
              FROM (SELECT a.value_id FROM {among} AS a UNION SELECT b.value_id FROM {now} AS b) AS s
              JOIN dbanon.history_value AS v ON v.value_id = s.value_id
             CROSS JOIN unnest({columns}::text[]) AS n (name)
            OFFSET 0) AS c
     WHERE c.value IS NOT NULL
),
possible_now AS MATERIALIZED (
    SELECT DISTINCT c.name, b.shown, c.code
      FROM {now} AS b
      JOIN coded AS c ON c.value_id = b.value_id
)
SELECT r.release_id, r.name, r.l, i.below, i.to_one
  FROM {releases}
 CROSS JOIN LATERAL (
    WITH pair AS MATERIALIZED (
        SELECT a.shown AS before, b.shown AS now, count(*) AS persons
          FROM ({before}) AS a
          JOIN {now} AS b ON b.person = a.person
         WHERE a.place = 1
           AND b.place = 1
         GROUP BY a.shown, b.shown
    ),
    possible AS MATERIALIZED (
        SELECT p.before, p.now, p.persons, s.code
          FROM pair AS p
          JOIN (SELECT DISTINCT a.shown, c.code
                  FROM ({shown}) AS a
                  JOIN coded AS c ON c.value_id = a.value_id
                 WHERE c.name = r.name) AS s ON s.shown = p.before
    ),
    left_over AS (
        SELECT p.before, p.now, p.persons, count(*) AS candidates
          FROM possible AS p
          JOIN possible_now AS s ON s.name = r.name AND s.shown = p.now AND s.code = p.code
         GROUP BY p.before, p.now, p.persons
    )
    SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates < r.l), 0)::bigint AS below,
           coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint AS to_one
      FROM left_over AS l) AS i
 ORDER BY r.release_id, r.place
