-- Tables of release data that no served release needs, and what was set aside; with their kinds.
SELECT c.relname, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND (c.relkind = 'r' OR c.relkind = 'v' AND c.relname ~ '^retired_[0-9]+$')
   AND c.relname <> ALL (%s::text[])
 ORDER BY c.relname
