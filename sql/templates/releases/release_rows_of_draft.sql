-- What readers are served; the draft's order tells nothing of the source's.
SELECT {columns}
  FROM {draft} AS s
  JOIN {groups} AS g ON g.group_id = s.group_id
