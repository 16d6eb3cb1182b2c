-- Note of each row which partition it lies in: once detached, its key may come again elsewhere.
UPDATE {rows} AS r
   SET leaf = {leaf}
  FROM ONLY {source} AS s
 WHERE {join}
