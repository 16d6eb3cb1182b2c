-- Whether two views are defined alike, with columns of the same names and types.
SELECT count(DISTINCT (pg_get_viewdef(c.oid), c.reloptions, c.relowner,
                       ARRAY(SELECT format('%%L %%s %%s %%s', a.attname, a.atttypid, a.atttypmod, a.attcollation)
                               FROM pg_attribute AS a
                              WHERE a.attrelid = c.oid
                                AND a.attnum > 0
                              ORDER BY a.attnum))) = 1
   AND count(*) = 2
  FROM pg_class AS c
 WHERE c.oid IN (%(one)s, %(other)s)
   AND c.relkind = 'v'
