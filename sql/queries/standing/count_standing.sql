-- How many rows stay as they are published, how many were published and are not any more, how many are
-- published still though they are gone, how many went with those who did, and of how many rows the values
-- differ from those that are published; and how many of those that are gone were so for too long. fresh:
-- how many were never published.
WITH departed AS (
    SELECT count(*) FILTER (WHERE d.is_gone) AS gone,
           count(*) FILTER (WHERE NOT d.is_gone) AS others
      FROM pg_temp.history_departed AS d
),
standing AS (
    SELECT count(*) FILTER (WHERE s.place IS NULL) AS gone,
           count(*) FILTER (WHERE s.class IS NULL) AS absent,
           count(*) FILTER (WHERE s.place IS NOT NULL
                              AND s.class IS NOT NULL
                              AND NOT EXISTS (SELECT
                                                FROM pg_temp.history_departed AS d
                                               WHERE d.person = s.person)) AS changed
      FROM pg_temp.history_standing AS s
)
SELECT (SELECT count(*) FROM pg_temp.history_before AS b) - s.gone - d.others,
       s.absent - %(fresh)s + d.others,
       s.gone - d.gone,
       d.gone,
       s.changed,
       (SELECT count(*)
          FROM pg_temp.history_departed AS d
          JOIN pg_temp.history_missed AS m ON m.person = d.person
         WHERE m.is_overdue)
  FROM standing AS s
 CROSS JOIN departed AS d
