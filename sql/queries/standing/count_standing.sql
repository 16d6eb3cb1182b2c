-- How many rows stay as they are published, and how many were published and are not any more.
SELECT count(*) FILTER (WHERE s.classes IS NOT NULL AND NOT s.classes && %(withdrawn)s::bigint[]),
       count(*) FILTER (WHERE s.is_known AND (s.classes IS NULL OR s.classes && %(withdrawn)s::bigint[]))
  FROM pg_temp.history_standing AS s
