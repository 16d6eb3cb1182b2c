-- Read the source where nothing that reading it runs can write.
INSERT INTO {stage}
SELECT {columns}
  FROM {source} AS s
