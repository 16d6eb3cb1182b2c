-- The sensitive value of each row that is published.
SELECT {value} AS {sensitive}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
