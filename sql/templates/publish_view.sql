-- Serve the live source while its guards can be relied on. OFFSET 0 keeps the conditions of readers
-- above: further down, PostgreSQL would estimate from statistics of the source how many rows meet
-- them, hidden rows included, and EXPLAIN would tell.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
SELECT l.*
  FROM (
{live}
       ) AS l
 WHERE {intact}()
OFFSET 0
