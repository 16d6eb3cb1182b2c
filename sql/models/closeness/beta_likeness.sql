-- Finds the largest relative gain of a sensitive value in every class; enhanced scales it by its own bound.
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
           max(CASE WHEN c.members / s.members <= w.share THEN 0
                    WHEN {kind} = 'basic' THEN (c.members / s.members - w.share) / w.share
                    ELSE (c.members / s.members - w.share) / w.share
                         * {beta} / least({beta}, -ln(w.share)) END) AS achieved
      FROM cells AS c
      JOIN sizes AS s ON s.class = c.class
      JOIN whole AS w ON w.value = c.value
     GROUP BY c.class
)
