-- Finds the largest logarithm of a share over that in the relation: infinite where a value is missing.
sizes AS (
    SELECT class, sum(members)::double precision AS members
      FROM cells
     GROUP BY class
),
whole AS (
    SELECT value, sum(members) / sum(sum(members)) OVER () AS share
      FROM (SELECT value, members::double precision FROM cells) AS c
     GROUP BY value
),
each_class AS (
    SELECT c.class, max(s.members) AS members,
           CASE WHEN count(*) < (SELECT count(*) FROM whole) THEN 'Infinity'
                ELSE max(abs(ln(c.members / s.members / w.share))) END AS achieved
      FROM cells AS c
      JOIN sizes AS s ON s.class = c.class
      JOIN whole AS w ON w.value = c.value
     GROUP BY c.class
)
