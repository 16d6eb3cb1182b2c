-- How many rows stay as they are published, how many were published and are not any more, and how many
-- are published still though they are gone.
SELECT count(*) FILTER (WHERE s.classes IS NOT NULL AND NOT s.classes && %(withdrawn)s::bigint[]),
       count(*) FILTER (WHERE s.is_known AND (s.classes IS NULL OR s.classes && %(withdrawn)s::bigint[])),
       (SELECT count(*)
          FROM pg_temp.history_before AS b
         WHERE NOT b.classes && %(withdrawn)s::bigint[]
           AND NOT EXISTS (SELECT FROM pg_temp.history_standing AS o WHERE o.person = b.person))
  FROM pg_temp.history_standing AS s
