-- Whether a copy has as many rows of every class as are remembered.
SELECT NOT EXISTS (SELECT
                     FROM (SELECT {class} AS class, count(*) AS rows
                             FROM ONLY {release} AS s
                             JOIN dbanon.history_key AS k ON k.key_id = {key}
                            GROUP BY 1) AS c
                     FULL JOIN (SELECT p.class, count(*) AS rows
                                  FROM pg_temp.history_present AS p
                                 GROUP BY p.class) AS m USING (class)
                    WHERE c.rows IS DISTINCT FROM m.rows)
