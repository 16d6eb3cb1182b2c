-- Whether each key stands for one row, by the key's own equality, and no part of one is NULL.
SELECT NOT EXISTS (SELECT
                     FROM {rows} AS r
                    GROUP BY {keys}
                   HAVING count(*) > 1
                       OR num_nulls({keys}) > 0)
