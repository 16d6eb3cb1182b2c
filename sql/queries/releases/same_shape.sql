-- Whether two tables have the same columns, of the same types and in the same order.
SELECT columns[1] = columns[2]
  FROM (SELECT array_agg(a.columns) AS columns
          FROM (SELECT string_agg(format('%%L %%s %%s %%s', a.attname, a.atttypid, a.atttypmod, a.attcollation),
                                  ', ' ORDER BY a.attnum) AS columns
                  FROM pg_attribute AS a
                 WHERE a.attrelid IN (to_regclass(%(one)s), to_regclass(%(other)s))
                   AND a.attnum > 0
                   AND NOT a.attisdropped
                 GROUP BY a.attrelid) AS a) AS t
