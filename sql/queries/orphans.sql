-- Tables of release data whose release is not among those served.
SELECT c.relname
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND c.relkind = 'r'
   AND NOT substring(c.relname FROM '[0-9]+$')::bigint = ANY (%s::bigint[])
 ORDER BY c.relname
