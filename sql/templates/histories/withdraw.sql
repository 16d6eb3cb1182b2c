-- Take classes out of a copy. The number of each class is worked out once.
WITH class AS MATERIALIZED (
    SELECT c.published, {class} AS class
      FROM (SELECT DISTINCT ({published})::text AS published FROM ONLY {release} AS s) AS c
     CROSS JOIN dbanon.history_key AS k
     WHERE k.key_id = {key}
)
DELETE FROM ONLY {release} AS s
 WHERE ({published})::text IN (SELECT c.published
                                 FROM class AS c
                                 JOIN unnest({withdrawn}::bigint[]) AS w (class) ON w.class = c.class)
