-- What may lead readers to what is private, as far as a name in a text can tell: functions that run
-- as an owner who reads the source, and whose body names it, a view of it or a private schema.
SELECT a.reader, a.name, 'sign', n.nspname::text, f.proname::text,
       f.proowner = a.role
       OR EXISTS (SELECT FROM aclexplode(f.proacl) AS x WHERE x.grantee = a.role)
  FROM pg_proc AS f
  JOIN pg_namespace AS n ON n.oid = f.pronamespace
  JOIN pg_language AS l ON l.oid = f.prolang AND l.lanname NOT IN ('internal', 'c')
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON has_function_privilege(a.role, f.oid, 'EXECUTE')
 WHERE f.prosecdef
   AND f.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
   AND n.nspname NOT IN ('dbanon', 'dbanon_data')
   AND f.oid <> ALL (%(oids)s::oid[])
   AND has_any_column_privilege(f.proowner, %(source)s::oid, 'SELECT')
   AND EXISTS (SELECT
                 FROM (SELECT c.relname::text
                         FROM unnest(%(classes)s::oid[], %(oids)s::oid[], %(origins)s::text[])
                              AS p (class, oid, origin)
                         JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.oid
                        WHERE p.origin = 'source'
                        UNION ALL
                       SELECT 'dbanon_data'
                        UNION ALL
                       SELECT 'dbanon') AS word (text)
                WHERE f.prosrc ~* ('(^|\W)' || regexp_replace(word.text, '(\W)', '\\\1', 'g')
                                   || '($|\W)'))
