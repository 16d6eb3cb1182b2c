-- Whether each key stands for one row, by the key's own equality, and none is NULL.
SELECT NOT EXISTS (SELECT
                     FROM {rows} AS r
                    GROUP BY {keys}
                   HAVING count(*) > 1
                       OR {missing})
