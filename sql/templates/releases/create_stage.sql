-- What is read of the source once the groups are known: a transaction that writes reads it no more.
CREATE TEMPORARY TABLE {stage} ON COMMIT DROP AS
SELECT {columns}
  FROM {source} AS s
  WITH NO DATA
