-- What the copy takes from the rows themselves: without their keys, and gone before it is served.
CREATE UNLOGGED TABLE {draft} AS
SELECT 0 AS group_id{columns}
  FROM {source} AS s
  WITH NO DATA
