-- Who may read a published relation, or one that is made of it and of nothing private, and as which
-- roles each may act.
--
-- A reader is a grantee, of a single column too, or whoever inherits or can take on the role of one,
-- or calls a function that reads it with its owner's rights.
-- Members of the owner may act as the owner anyway, and are none. When everybody may read a live
-- view, readers are also the roles that log in and cannot read its source: these are said to be
-- strangers.
WITH RECURSIVE copy (oid, needed) AS (
    -- needed: what a view of its invoker's leads to, whose readers have a right of their own on that.
    -- A view of whoever may not read that shows nothing of it, and anybody can make one.
    SELECT %(published)s::oid, NULL::oid
    UNION
    SELECT v.oid, CASE WHEN o.is_invoker THEN coalesce(c.needed, c.oid) END
      FROM copy AS c
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
      JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      JOIN pg_class AS v ON v.oid = w.ev_class
     CROSS JOIN LATERAL (
           SELECT lower(coalesce(v.reloptions::text, '')) ~ 'security_invoker=(true|on|yes|1)'
           ) AS o (is_invoker)
     WHERE w.ev_type = '1'
       AND v.oid <> ALL (%(relations)s::oid[])
       AND (o.is_invoker
            OR v.relkind = 'm' AND v.relispopulated
            OR has_any_column_privilege(v.relowner, coalesce(c.needed, c.oid), 'SELECT'))
),
-- A function that reads it for its callers, as far as PostgreSQL notes what a function uses.
voice (owner, acl) AS (
    SELECT p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
      FROM copy AS o
      JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = o.oid
      JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
     WHERE p.prosecdef
       AND has_any_column_privilege(p.proowner, coalesce(o.needed, o.oid), 'SELECT')
       AND p.oid <> ALL (%(functions)s::oid[])
),
grantee (role) AS (
    SELECT a.grantee
      FROM copy AS o
      JOIN pg_class AS c ON c.oid = o.oid
     CROSS JOIN LATERAL aclexplode(c.relacl) AS a
     WHERE o.needed IS NULL
       AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee
      FROM copy AS o
      JOIN pg_class AS c ON c.oid = o.oid
      JOIN pg_attribute AS t ON t.attrelid = c.oid
     CROSS JOIN LATERAL aclexplode(t.attacl) AS a
     WHERE o.needed IS NULL
       AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee
      FROM voice AS v
     CROSS JOIN LATERAL aclexplode(v.acl) AS a
     WHERE a.grantee <> v.owner
),
candidate (oid, name, logs_in) AS (
    SELECT r.oid, r.rolname::text, r.rolcanlogin
      FROM pg_class AS p
      JOIN pg_roles AS r ON NOT r.rolsuper AND NOT pg_has_role(r.oid, p.relowner, 'MEMBER')
     WHERE p.oid = %(published)s
),
insider (role) AS MATERIALIZED (
    SELECT r.oid
      FROM pg_roles AS r
     WHERE has_table_privilege(r.oid, %(source)s::oid, 'SELECT')
),
-- Before PostgreSQL 16 there is no right to SET; who may give a role to others may give it to itself.
known (role, name) AS (
    SELECT g.role, coalesce(r.rolname::text, 'PUBLIC')
      FROM grantee AS g
      LEFT JOIN pg_roles AS r ON r.oid = g.role
    UNION
    SELECT c.oid, c.name
      FROM grantee AS g
      JOIN candidate AS c
        ON pg_has_role(c.oid, g.role, 'USAGE')
        OR pg_has_role(c.oid, g.role,
                       CASE WHEN current_setting('server_version_num')::integer >= 160000
                            THEN 'SET' ELSE 'MEMBER' END)
        OR pg_has_role(c.oid, g.role, 'MEMBER WITH ADMIN OPTION')
     WHERE g.role <> 0
),
reader (role, name, is_stranger) AS (
    SELECT k.role, k.name, false
      FROM known AS k
     UNION ALL
    SELECT c.oid, c.name, true
      FROM candidate AS c
     WHERE %(live)s
       AND c.logs_in
       AND c.oid NOT IN (SELECT k.role FROM known AS k)
       AND EXISTS (SELECT FROM grantee AS g WHERE g.role = 0)
       AND NOT EXISTS (SELECT FROM insider AS i WHERE pg_has_role(c.oid, i.role, 'MEMBER'))
),
-- Whatever the options of a membership are: who has the right to give them can change them.
acting (reader, role, is_stranger) AS (
    SELECT r.name, r.role, r.is_stranger
      FROM reader AS r
    UNION
    SELECT a.reader, upper.role, a.is_stranger
      FROM acting AS a
     CROSS JOIN LATERAL (
           SELECT m.roleid
             FROM pg_auth_members AS m
            WHERE m.member = a.role
            UNION ALL
           SELECT r.oid
             FROM pg_database AS d
             JOIN pg_roles AS r ON r.rolname = 'pg_database_owner'
            WHERE d.datname = current_database()
              AND d.datdba = a.role
           ) AS upper (role)
)
SELECT a.reader, a.role, coalesce(r.rolname::text, a.reader), a.is_stranger
  FROM acting AS a
  LEFT JOIN pg_roles AS r ON r.oid = a.role
