-- Tables of this database, those first whose name differs only in case or in the schema; then, in the
-- order of their names, those of about the same length, among which a slip of the pen is looked for.
SELECT n.nspname, c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE abs(length(c.relname) - length(%(name)s)) <= 2
   AND c.relkind IN ('r', 'p')
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'dbanon', 'dbanon_data')
   AND n.nspname NOT LIKE 'pg\_toast%%'
   AND n.nspname NOT LIKE 'pg\_temp%%'
 ORDER BY lower(c.relname) = lower(%(name)s) DESC, 1, 2
 LIMIT 5000
