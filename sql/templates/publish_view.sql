-- Serve the live source under stored recodings, without the groups that no longer hold. OFFSET 0
-- keeps the conditions of readers above: further down, PostgreSQL would estimate from statistics of
-- the source how many rows meet them, hidden rows included, and EXPLAIN would tell.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
SELECT {columns}
  FROM ONLY {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 WHERE g.shown
OFFSET 0
