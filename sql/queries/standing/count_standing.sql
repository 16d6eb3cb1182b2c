-- How many rows stay as they are published, how many were published and are not any more, how many are
-- published still though they are gone, how many went with those who did, and of how many rows the values
-- differ from those that are published; and how many of those that are gone were so for too long.
SELECT coalesce(sum(cardinality(s.classes)) FILTER (WHERE s.is_shown), 0)::bigint,
       coalesce(sum(cardinality(s.places)) FILTER (WHERE s.is_known AND NOT s.is_shown), 0)::bigint,
       (SELECT coalesce(sum(cardinality(b.classes)), 0)::bigint
          FROM pg_temp.history_before AS b
         WHERE NOT EXISTS (SELECT FROM pg_temp.history_standing AS o WHERE o.person = b.person)
           AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = b.person)),
       (SELECT coalesce(sum(cardinality(d.value_ids)), 0)::bigint
          FROM pg_temp.history_departed AS d
         WHERE d.is_gone),
       coalesce(sum(cardinality(s.classes))
                FILTER (WHERE s.is_shown AND NOT s.shown_ids <@ s.value_ids), 0)::bigint,
       (SELECT coalesce(sum(cardinality(d.value_ids)), 0)::bigint
          FROM pg_temp.history_departed AS d
          JOIN pg_temp.history_missed AS m ON m.person = d.person
         WHERE m.is_overdue)
  FROM (SELECT h.*,
               h.classes IS NOT NULL
                   AND NOT EXISTS (SELECT
                                     FROM pg_temp.history_departed AS d
                                    WHERE d.person = h.person) AS is_shown
          FROM pg_temp.history_standing AS h) AS s
