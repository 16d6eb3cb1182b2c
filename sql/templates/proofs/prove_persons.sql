-- Judge the published classes by the persons who have each value, and by what is left without one.
WITH pairs AS (
    SELECT DISTINCT dense_rank() OVER (ORDER BY {quasi}) AS class, {value} AS v, {subject} AS p
      FROM {persons}
),
held AS (
    SELECT class, v, p, count(*) OVER (PARTITION BY class, v) AS holders
      FROM pairs
),
owners AS (
    SELECT class, count(*) AS persons, max(sole) AS sole
      FROM (SELECT class, p, count(*) FILTER (WHERE holders = 1) AS sole
              FROM held
             GROUP BY class, p) AS owned
     GROUP BY class
),
valued AS (
    SELECT class, max(holders) AS most, count(*) AS different
      FROM (SELECT class, v, max(holders) AS holders FROM held GROUP BY class, v) AS c
     GROUP BY class
),
each_class AS (
    SELECT o.persons, {achieved} AS achieved
      FROM owners AS o
      JOIN valued AS x ON x.class = o.class
)
SELECT {required}::double precision, min(e.achieved), max(e.achieved), count(*),
       count(*) FILTER (WHERE e.achieved < {required} - 1e-9),
       count(*) FILTER (WHERE e.achieved > {required} + 1e-9),
       coalesce(sum(e.persons), 0)::bigint
  FROM each_class AS e
