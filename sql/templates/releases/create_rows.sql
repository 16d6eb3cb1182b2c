-- The private membership of a release: which row of the source is in which group.
CREATE TABLE {rows} AS
SELECT {keys}, 0 AS group_id{leaf}
  FROM {source} AS s
  WITH NO DATA
