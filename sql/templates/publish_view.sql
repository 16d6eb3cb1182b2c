-- Serve the live source.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
{live}
