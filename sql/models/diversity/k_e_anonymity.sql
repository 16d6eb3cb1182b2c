-- Finds the range of the sensitive numbers of every class: -1 with fewer than k of them.
each_class AS (
    SELECT class, sum(members) AS members,
           CASE WHEN count(number) < {k} THEN -1 ELSE max(number) - min(number) END AS achieved
      FROM (SELECT class, members, nullif(number, 'NaN') AS number FROM cells) AS c
     GROUP BY class
)
