-- What readers are served, in an order that tells nothing of the source's.
SELECT {columns}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 ORDER BY gen_random_uuid()
