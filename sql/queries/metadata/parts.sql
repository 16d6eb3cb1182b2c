-- What there is of the metadata: schemas, tables, their columns, and functions, by name.
SELECT 'schema', n.nspname::text
  FROM pg_namespace AS n
 WHERE n.nspname IN ('dbanon', 'dbanon_data')
UNION ALL
SELECT 'table', c.relname::text
  FROM pg_class AS c
 WHERE c.relnamespace = to_regnamespace('dbanon')
   AND c.relkind = 'r'
UNION ALL
SELECT 'column', format('%s.%s', c.relname, a.attname)
  FROM pg_class AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid
 WHERE c.relnamespace = to_regnamespace('dbanon')
   AND c.relkind = 'r'
   AND a.attnum > 0
   AND NOT a.attisdropped
UNION ALL
SELECT 'function', p.proname::text
  FROM pg_proc AS p
 WHERE p.pronamespace = to_regnamespace('dbanon')
