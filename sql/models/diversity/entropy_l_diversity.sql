-- Compares exp(entropy) of the sensitive values of every class with l.
sizes AS (
    SELECT class, sum(members)::double precision AS members
      FROM cells
     GROUP BY class
),
each_class AS (
    SELECT c.class, max(s.members) AS members,
           exp(-sum(c.members / s.members * ln(c.members / s.members))) AS achieved
      FROM cells AS c
      JOIN sizes AS s ON s.class = c.class
     GROUP BY c.class
)
