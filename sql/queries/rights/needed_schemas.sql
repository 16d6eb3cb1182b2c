-- Roles that still need to use a schema, with an object that they need it for.
--
-- endings, comments: of the names of what is served of a release, and of what its comment is like.
-- Needed is a schema where a role was given a right on something, and one that holds more than
-- published relations; the schema dbanon by whoever was given another published relation.
WITH asked (role, name) AS (
    SELECT r.oid, r.rolname::text
      FROM pg_roles AS r
     WHERE r.rolname = ANY (%(roles)s)
    UNION
    SELECT 0, 'public'
     WHERE 'public' = ANY (%(roles)s)
),
served (oid) AS (
    SELECT c.oid
      FROM dbanon.release AS r
      JOIN pg_namespace AS n ON n.nspname = r.relation_schema
      JOIN unnest(%(endings)s::text[], %(comments)s::text[]) AS k (ending, comment) ON true
      JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = r.relation_name || k.ending
     WHERE r.served
       AND (k.comment IS NULL OR obj_description(c.oid, 'pg_class') LIKE k.comment)
),
given (role, schema, object) AS (
    SELECT a.grantee, n.nspname::text, format('%%I.%%I', n.nspname, c.relname)
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL aclexplode(c.relacl) AS a
    UNION
    SELECT a.grantee, n.nspname::text, format('%%I.%%I', n.nspname, c.relname)
      FROM pg_attribute AS t
      JOIN pg_class AS c ON c.oid = t.attrelid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL aclexplode(t.attacl) AS a
    UNION
    SELECT a.grantee, 'dbanon', format('%%I.%%I', n.nspname, c.relname)
      FROM served AS s
      JOIN pg_class AS c ON c.oid = s.oid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL aclexplode(c.relacl) AS a
    UNION
    SELECT a.grantee, n.nspname::text, format('%%I.%%I', n.nspname, f.proname)
      FROM pg_proc AS f
      JOIN pg_namespace AS n ON n.oid = f.pronamespace
     CROSS JOIN LATERAL aclexplode(f.proacl) AS a
     WHERE a.grantee <> 0
    UNION
    SELECT q.role, n.nspname::text, format('%%I.%%I', n.nspname, c.relname)
      FROM asked AS q
     CROSS JOIN pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname <> 'dbanon'
       AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
       AND c.oid NOT IN (SELECT s.oid FROM served AS s)
)
SELECT q.name, g.schema, min(g.object)
  FROM asked AS q
  JOIN given AS g ON g.role = q.role
 WHERE g.schema = ANY (%(schemas)s)
 GROUP BY q.name, g.schema
 ORDER BY q.name, g.schema
