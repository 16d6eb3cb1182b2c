-- Grantees of a published relation who can, by any role they may act as, read what is private:
-- the source with its ancestors and partitions, the metadata, or the data of the releases.
WITH RECURSIVE published AS (
    SELECT c.oid, c.relacl, c.relowner
      FROM pg_class AS c
     WHERE c.oid = %(published)s
),
grantee AS (
    SELECT a.grantee AS role
      FROM published AS p
     CROSS JOIN LATERAL aclexplode(p.relacl) AS a
     WHERE a.grantee <> p.relowner
    UNION
    SELECT a.grantee
      FROM published AS p
      JOIN pg_attribute AS c ON c.attrelid = p.oid
     CROSS JOIN LATERAL aclexplode(c.attacl) AS a
     WHERE a.grantee <> p.relowner
),
family (oid) AS (
    SELECT %(source)s::oid
    UNION
    SELECT CASE WHEN i.inhparent = f.oid THEN i.inhrelid ELSE i.inhparent END
      FROM family AS f
      JOIN pg_inherits AS i ON f.oid IN (i.inhparent, i.inhrelid)
),
private AS (
    SELECT c.oid, n.nspname, c.relname
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND (c.oid IN (SELECT f.oid FROM family AS f)
            OR n.nspname IN ('dbanon', 'dbanon_data'))
)
SELECT r.rolname::text, p.nspname, p.relname
  FROM grantee AS g
  JOIN pg_roles AS r ON r.oid = g.role
  JOIN pg_roles AS acting ON pg_has_role(g.role, acting.oid, 'MEMBER')
 CROSS JOIN private AS p
 WHERE has_any_column_privilege(acting.oid, p.oid, 'SELECT')
UNION
SELECT 'PUBLIC', p.nspname, p.relname
  FROM grantee AS g
 CROSS JOIN private AS p
 WHERE g.role = 0
   AND has_any_column_privilege('public', p.oid, 'SELECT')
 ORDER BY 1, 2, 3
