-- What a model of a sensitive column reads of an overlay.
cells AS (
    SELECT dense_rank() OVER (ORDER BY {quasi}) AS class,
           dense_rank() OVER (ORDER BY o.{value}) AS value,
           {label} AS label, {number} AS number, count(*) AS members
      FROM overlay AS o
     GROUP BY {quasi}, o.{value}
),
classes AS (
    SELECT c.class, sum(c.members)::bigint AS members, count(*) AS distinct_values
      FROM cells AS c
     GROUP BY c.class
)
