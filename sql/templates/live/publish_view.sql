-- Serve the live source. OFFSET 0 keeps the conditions of readers above: further down, PostgreSQL
-- would estimate from statistics of the source how many rows meet them, hidden rows included, and
-- EXPLAIN would tell.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
{live}
OFFSET 0
