-- Finds the c that every class stays below: infinite where a negative value is too rare.
ranked AS (
    SELECT class, label, members,
           row_number() OVER (PARTITION BY class ORDER BY members DESC, value) AS place
      FROM cells
),
guarded AS (
    SELECT class, min(place) FILTER (WHERE label IS NULL OR label <> ALL ({positive})) AS y
      FROM ranked
     GROUP BY class
),
sums AS (
    SELECT r.class, g.y, sum(r.members) AS members,
           sum(r.members) FILTER (WHERE r.place = g.y) AS top,
           sum(r.members::double precision) FILTER (
               WHERE CASE WHEN g.y <= {l} - 1 THEN r.place >= {l}
                          ELSE r.place >= {l} - 1 AND r.place <> g.y END) AS tail
      FROM ranked AS r
      JOIN guarded AS g ON g.class = r.class
     GROUP BY r.class, g.y
),
rarest AS (
    SELECT class, min(members) AS fewest
      FROM (SELECT r.class, n.label, coalesce(sum(r.members) FILTER (WHERE r.label = n.label), 0)
                   AS members
              FROM ranked AS r
             CROSS JOIN unnest({negative}) AS n (label)
             GROUP BY r.class, n.label) AS x
     GROUP BY class
),
each_class AS (
    SELECT s.class, s.members,
           CASE WHEN s.members * {share} - 1e-9 * s.members > r.fewest THEN 'Infinity'
                WHEN {l} = 1 OR s.y IS NULL THEN 0
                ELSE coalesce(s.top / s.tail, 'Infinity') END AS achieved
      FROM sums AS s
      JOIN rarest AS r ON r.class = s.class
)
