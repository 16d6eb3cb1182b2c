-- Compare the values of two releases: what a class shows of a column in one may be less in the other,
-- and somebody who was in both has one of the values of both. Each step is joined to the next alone:
-- to join the values first, of all classes with all, would take long. Values are found by their numbers:
-- how many there are of a table, no planner knows.
WITH coded AS MATERIALIZED (
    SELECT c.value_id, dense_rank() OVER (ORDER BY c.value) AS code
      FROM (SELECT v.value_id, v.value -> {column} AS value
              FROM (SELECT a.value_id FROM {shown} AS a UNION SELECT b.value_id FROM {now} AS b) AS s
              JOIN dbanon.history_value AS v ON v.value_id = s.value_id
            OFFSET 0) AS c
     WHERE c.value IS NOT NULL
),
pair AS MATERIALIZED (
    SELECT a.shown AS before, b.shown AS now, count(*) AS persons
      FROM {before} AS a
      JOIN {now} AS b ON b.person = a.person
     WHERE a.place = 1
       AND b.place = 1
     GROUP BY a.shown, b.shown
),
possible AS MATERIALIZED (
    SELECT p.before, p.now, p.persons, s.code
      FROM pair AS p
      JOIN (SELECT DISTINCT a.shown, c.code
              FROM {shown} AS a
              JOIN coded AS c ON c.value_id = a.value_id) AS s ON s.shown = p.before
),
left_over AS (
    SELECT p.before, p.now, p.persons, count(*) AS candidates
      FROM possible AS p
      JOIN (SELECT DISTINCT b.shown, c.code
              FROM {now} AS b
              JOIN coded AS c ON c.value_id = b.value_id) AS s ON s.shown = p.now AND s.code = p.code
     GROUP BY p.before, p.now, p.persons
)
SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates < {l}), 0)::bigint,
       coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint
  FROM left_over AS l
