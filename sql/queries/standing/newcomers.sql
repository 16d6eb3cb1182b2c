-- How many persons a former release shows, and how many a release shows who were never published.
SELECT (SELECT count(DISTINCT f.person) FROM pg_temp.history_shown AS f),
       (SELECT count(DISTINCT e.person)
          FROM pg_temp.history_entries AS e
         WHERE e.release_id = %(release)s
           AND e.class <> 0
           AND NOT EXISTS (SELECT
                             FROM pg_temp.history_entries AS o
                            WHERE o.person = e.person
                              AND o.release_id <> e.release_id))
