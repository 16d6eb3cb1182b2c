-- How many of those whose cell may be another one had none, whether a cell was split, and how many all
-- are.
SELECT count(*) FILTER (WHERE m.former IS NULL), coalesce(bool_or(m.is_split), false), count(*)
  FROM pg_temp.history_moved AS m
