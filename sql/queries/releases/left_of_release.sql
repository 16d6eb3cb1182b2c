-- What is left of a release: its view, its private tables, and the tables that its guards are on.
SELECT %(view)s::oid
 WHERE %(view)s::oid IS NOT NULL
 UNION
SELECT c.oid
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND c.relname IN (format('release_%%s', %(data_id)s::bigint),
                     format('rows_%%s', %(id)s::bigint),
                     format('groups_%%s', %(id)s::bigint))
 UNION
SELECT t.tgrelid
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname = 'dbanon_data'
   AND p.proname ~ format('^guard_%%s_', %(id)s::bigint)
