-- Whether the guards of a live view stand on its source as they were made, and nowhere else.
SELECT count(n.name) = count(*)
   AND count(*) = cardinality(%(names)s::text[])
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_namespace AS s ON s.oid = p.pronamespace
  LEFT JOIN unnest(%(names)s::text[], %(functions)s::text[], %(types)s::integer[], %(modes)s::text[])
         AS n (name, function, type, mode)
    ON t.tgrelid = %(source)s
   AND t.tgname = n.name
   AND p.proname = n.function
   AND t.tgtype = n.type
   AND t.tgenabled = left(n.mode, 1)::"char"
   AND cardinality(t.tgattr::int2[]) = 0
   AND (t.tgqual IS NULL OR n.name LIKE '%%fence')
 WHERE s.nspname = 'dbanon_data'
   AND p.proname ~ format('^guard_%%s_', %(data_id)s::bigint)
