-- Compare the values of the first release of a series with themselves: somebody in a class has one of those
-- that it shows of a column.
WITH coded AS MATERIALIZED (
    SELECT c.value_id, dense_rank() OVER (ORDER BY c.value) AS code
      FROM (SELECT v.value_id, v.value -> %(column)s::text AS value
              FROM (SELECT DISTINCT o.value_id FROM pg_temp.history_counted AS o) AS s
              JOIN dbanon.history_value AS v ON v.value_id = s.value_id
            OFFSET 0) AS c
     WHERE c.value IS NOT NULL
),
shown AS (
    SELECT o.class, c.code, sum(o.persons) AS persons
      FROM pg_temp.history_counted AS o
      LEFT JOIN coded AS c ON c.value_id = o.value_id
     GROUP BY o.class, c.code
),
left_over AS (
    SELECT sum(s.persons) AS persons, count(s.code) AS candidates
      FROM shown AS s
     GROUP BY s.class
)
SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates BETWEEN 1 AND %(l)s - 1), 0)::bigint,
       coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint
  FROM left_over AS l
