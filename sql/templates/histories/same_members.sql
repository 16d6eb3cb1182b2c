-- Whether a copy has as many rows of every class as are remembered.
SELECT NOT EXISTS (SELECT
                     FROM (SELECT {class} AS class, c.rows
                             FROM (SELECT ({published})::text AS published, count(*) AS rows
                                     FROM ONLY {release} AS s
                                    GROUP BY 1) AS c
                            CROSS JOIN dbanon.history_key AS k
                            WHERE k.key_id = {key}) AS c
                     FULL JOIN (SELECT p.class, count(*) AS rows
                                  FROM (SELECT n.class
                                          FROM pg_temp.history_present AS n
                                         UNION ALL
                                        SELECT b.class
                                          FROM pg_temp.history_before AS b
                                         WHERE NOT EXISTS (SELECT
                                                             FROM pg_temp.history_departed AS g
                                                            WHERE g.person = b.person)) AS p
                                 GROUP BY p.class) AS m USING (class)
                    WHERE c.rows IS DISTINCT FROM m.rows)
