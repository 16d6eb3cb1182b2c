-- Which default privileges would open to readers what dbanon makes next.
--
-- Of functions everybody is given EXECUTE, and what must not be called is taken from PUBLIC again;
-- types everybody may use.
SELECT a.reader, a.name, 'default privileges', coalesce(n.nspname::text, 'any schema'),
       format('%%s on new %%s', string_agg(DISTINCT e.privilege_type, ', '), w.objects),
       bool_or(a.role = e.grantee)
  FROM pg_default_acl AS d
  JOIN (VALUES ('r', 'tables'), ('S', 'sequences'), ('f', 'functions'), ('n', 'schemas'))
       AS w (type, objects)
    ON w.type = d.defaclobjtype
  LEFT JOIN pg_namespace AS n ON n.oid = d.defaclnamespace
 CROSS JOIN LATERAL aclexplode(d.defaclacl) AS e
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON a.role = e.grantee OR e.grantee = 0 AND w.type <> 'f'
 WHERE d.defaclrole IN (SELECT c.relowner
                          FROM pg_class AS c
                          JOIN pg_namespace AS s ON s.oid = c.relnamespace
                         WHERE c.oid = %(published)s
                            OR s.nspname IN ('dbanon', 'dbanon_data')
                         UNION
                        SELECT s.nspowner
                          FROM pg_namespace AS s
                         WHERE s.nspname IN ('dbanon', 'dbanon_data'))
   AND e.grantee <> d.defaclrole
   AND (w.type <> 'n' OR e.privilege_type = 'CREATE')
   AND (d.defaclnamespace = 0 OR n.nspname IN ('dbanon', 'dbanon_data'))
 GROUP BY a.reader, a.name, n.nspname, w.objects
