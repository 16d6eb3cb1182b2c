-- Compare the values of two releases: what a class shows of a column in one may be less in the other,
-- and somebody who was in both has one of the values of both.
WITH pair AS (
    SELECT a.classes AS before, b.classes AS now, count(*) AS persons
      FROM pg_temp.history_before AS a
      JOIN pg_temp.history_now AS b USING (person)
     GROUP BY a.classes, b.classes
),
shown_before AS (
    SELECT DISTINCT a.classes, v.value -> %(column)s::text AS value
      FROM pg_temp.history_before AS a
     CROSS JOIN LATERAL unnest(a.value_ids) AS u (value_id)
      JOIN dbanon.history_value AS v ON v.value_id = u.value_id
),
shown_now AS (
    SELECT DISTINCT b.classes, v.value -> %(column)s::text AS value
      FROM pg_temp.history_now AS b
     CROSS JOIN LATERAL unnest(b.value_ids) AS u (value_id)
      JOIN dbanon.history_value AS v ON v.value_id = u.value_id
),
left_over AS (
    SELECT p.before, p.now, p.persons, count(*) AS candidates
      FROM pair AS p
      JOIN shown_before AS a ON a.classes = p.before
      JOIN shown_now AS b ON b.classes = p.now AND b.value = a.value
     GROUP BY p.before, p.now, p.persons
)
SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates < %(l)s), 0)::bigint,
       coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint
  FROM left_over AS l
