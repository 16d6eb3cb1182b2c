-- Whether each key stands for one row, by the key's own equality, and no part of one is NULL.
SELECT count(*) = count(DISTINCT {key}){complete}
  FROM {rows} AS r
