-- The values that some rows were published with, as texts.
CREATE TEMPORARY TABLE {frozen} ON COMMIT DROP AS
SELECT {columns}
  FROM {stage} AS s
  WITH NO DATA
