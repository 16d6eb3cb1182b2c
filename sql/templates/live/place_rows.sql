-- Note of each row which partition it lies in: once detached, its key may come again elsewhere. They are
-- read through the whole, for which publishing has a name that nobody else can give away.
UPDATE {rows} AS r
   SET leaf = l.number
  FROM {source} AS s
  JOIN unnest({leaves}::oid[]) WITH ORDINALITY AS l (relation, number) ON l.relation = s.tableoid
 WHERE {join}
