-- Whether a copy has as many rows of every class as are remembered.
SELECT NOT EXISTS (SELECT
                     FROM (SELECT n.class, sum(n.rows) AS rows
                             FROM (SELECT {class} AS class, c.rows
                                     FROM (SELECT {published} AS published, s.rows
                                             FROM (SELECT {quasi}, count(*) AS rows
                                                     FROM ONLY {release} AS s
                                                    GROUP BY {alike}) AS s) AS c
                                     JOIN dbanon.history_key AS k ON k.key_id = {key}) AS n
                            GROUP BY n.class) AS c
                     FULL JOIN (SELECT p.class, sum(p.rows) AS rows
                                  FROM (SELECT n.class, count(*) AS rows
                                          FROM pg_temp.history_present AS n
                                         GROUP BY n.class
                                         UNION ALL
                                        SELECT b.class, count(*)
                                          FROM pg_temp.history_before AS b
                                         GROUP BY b.class
                                         UNION ALL
                                        SELECT g.class, -count(*)
                                          FROM pg_temp.history_departed AS g
                                         GROUP BY g.class) AS p
                                 GROUP BY p.class
                                HAVING sum(p.rows) <> 0) AS m USING (class)
                    WHERE c.rows IS DISTINCT FROM m.rows)
