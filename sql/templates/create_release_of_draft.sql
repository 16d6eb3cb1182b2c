-- The private copy that readers are served from; the draft's order tells nothing of the source's.
CREATE TABLE {release} AS
SELECT {columns}
  FROM {draft} AS s
  JOIN {groups} AS g ON g.group_id = s.group_id
