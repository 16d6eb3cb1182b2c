-- Whether everybody who is remembered was ever in a release of the persons.
SELECT NOT EXISTS (SELECT
                     FROM pg_temp.history_entries AS e
                    WHERE NOT EXISTS (SELECT
                                        FROM pg_temp.history_entries AS p
                                       WHERE p.person = e.person
                                         AND p.release_id = ANY (%(releases)s)))
