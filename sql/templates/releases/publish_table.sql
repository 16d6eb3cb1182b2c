-- Serve the private copy: through a view, a reader sees no ctid and no xmin.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
SELECT {columns}
  FROM ONLY {release} AS s
 WHERE {seen}()
