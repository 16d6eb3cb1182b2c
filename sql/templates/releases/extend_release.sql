-- Add rows to the private copy, and write all rows of the classes that gain or lose some again with them, in
-- random order: the order of rows then shows which classes changed, as their rows do, and no more. NULL marks a
-- class that changes.
WITH touched AS MATERIALIZED (
    SELECT unnest(c.places) AS place
      FROM (SELECT array_agg(n.place) FILTER (WHERE n.place IS NOT NULL) AS places
              FROM (SELECT {quasi}, s.ctid AS place FROM ONLY {release} AS s
                     UNION ALL
                    {changed}) AS n ({names}, place)
             GROUP BY {names}
            HAVING count(*) > count(n.place)) AS c
),
removed AS (
    DELETE FROM ONLY {release} AS t
     USING touched AS n
     WHERE t.ctid = n.place
    RETURNING t.*
)
INSERT INTO {release}
SELECT n.*
  FROM (SELECT o.* FROM removed AS o
         UNION ALL
        SELECT a.* FROM ({served}) AS a) AS n
 ORDER BY gen_random_uuid()
