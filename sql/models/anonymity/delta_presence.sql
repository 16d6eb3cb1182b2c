-- Compares the share of the population that is published in every class with dmin and dmax; classes may share nobody.
each_class AS (
    -- A class that shares rows of the population with another has no share of its own: infinite.
    -- What no class covers is one more class, with a share of 0; it fails when dmin is above that.
    SELECT p.class, p.members,
           CASE WHEN p.class IS NULL THEN 0
                WHEN p.covered = 0 OR p.alone < p.covered THEN 'Infinity'
                ELSE p.members::double precision / p.covered END AS achieved
      FROM presence AS p
     WHERE p.class IS NOT NULL OR p.covered > 0
)
