-- The private membership of a release: which row of the source is in which group; and until it is
-- remembered, which sensitive values it shows.
CREATE TABLE {rows} AS
SELECT {keys}, 0 AS group_id{last}
  FROM {source} AS s
  WITH NO DATA
