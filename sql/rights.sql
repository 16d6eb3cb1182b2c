-- Rights of roles on relations and schemas, granted and revoked.

-- name: can_read
-- Test if the current role may read a whole relation.
SELECT has_table_privilege(%s::oid, 'SELECT')

-- name: can_record
-- Test if the ledger has its tables, and if the current role can record a check, on a writable server.
SELECT count(*) = 2,
       NOT pg_is_in_recovery()
           AND current_setting('transaction_read_only') = 'off'
           AND coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE')
                                 AND has_table_privilege(c.oid, CASE c.relname
                                                                WHEN 'release' THEN 'SELECT'
                                                                ELSE 'INSERT' END)), false)
  FROM pg_namespace AS n
  JOIN pg_class AS c ON c.relnamespace = n.oid
 WHERE n.nspname = 'dbanon'
   AND c.relname IN ('release', 'verification')
   AND c.relkind = 'r'

-- name: direct_grants
-- Rights that were granted to roles directly, on a relation (NULL) and on schemas, with the grantor.
SELECT coalesce(r.rolname::text, 'public'), g.schema, g.privilege, w.rolname::text
  FROM (SELECT NULL::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = %(published)s
         UNION
        SELECT NULL::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_attribute AS c
         CROSS JOIN LATERAL aclexplode(c.attacl) AS a
         WHERE c.attrelid = %(published)s
         UNION
        SELECT n.nspname::text, a.grantee, a.privilege_type, a.grantor
          FROM pg_namespace AS n
         CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
         WHERE n.nspname = ANY (%(schemas)s)
       ) AS g (schema, grantee, privilege, grantor)
  LEFT JOIN pg_roles AS r ON r.oid = g.grantee
  JOIN pg_roles AS w ON w.oid = g.grantor
 WHERE coalesce(r.rolname::text, 'public') = ANY (%(roles)s)
 ORDER BY 1, 2, 3, 4

-- name: existing_roles
-- The names that are roles of this server.
SELECT rolname
  FROM pg_roles
 WHERE rolname = ANY (%s)

-- name: grants
-- The grants on a relation and its columns, except the owner's.
WITH target AS (
    SELECT c.oid, c.relacl, c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = %s
       AND c.relname = %s
),
granted (grantee, privilege, grantable, column_name) AS (
    SELECT a.grantee, a.privilege_type, a.is_grantable, NULL::text
      FROM target AS t
     CROSS JOIN LATERAL aclexplode(t.relacl) AS a
    UNION ALL
    SELECT a.grantee, a.privilege_type, a.is_grantable, c.attname::text
      FROM target AS t
      JOIN pg_attribute AS c ON c.attrelid = t.oid
     CROSS JOIN LATERAL aclexplode(c.attacl) AS a
)
SELECT coalesce(r.rolname::text, ''), g.privilege, g.grantable, g.column_name
  FROM granted AS g
 CROSS JOIN target AS t
  LEFT JOIN pg_roles AS r ON r.oid = g.grantee
 WHERE g.grantee <> t.relowner
 ORDER BY 1, 2, 4

-- name: has_ledger
-- Test if the current role can read the ledger.
SELECT count(*) = 1 AND coalesce(bool_and(has_table_privilege(c.oid, 'SELECT')
                                          AND has_schema_privilege(c.relnamespace, 'USAGE')), false)
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon'
   AND c.relname = 'release'

-- name: is_owner
-- Test if the current role may act as the owner of a relation.
SELECT pg_has_role(relowner, 'USAGE')
  FROM pg_class
 WHERE oid = %s

-- name: is_unread
-- Test that no role but the owner was ever granted a release of a relation's series. False if that is unknown: of a
-- relation that was made again, restored from a dump, or published by an older version; if it has dependent objects or
-- companion relations; and if a role with rights of the owner, or on the private tables, cannot read the source.
WITH mark AS MATERIALIZED (
    {mark}
),
latest AS (
    SELECT h.series
      FROM dbanon.history AS h
     WHERE h.table_schema = %(table_schema)s
       AND h.table_name = %(table_name)s
       AND h.relation_schema = %(schema)s
       AND h.relation_name = %(name)s
     ORDER BY h.release_id DESC
     LIMIT 1
),
known (release_id) AS (
    SELECT h.release_id
      FROM dbanon.history AS h
      JOIN latest AS l ON l.series = h.series
     WHERE h.table_schema = %(table_schema)s
       AND h.table_name = %(table_name)s
     UNION
    SELECT r.release_id
      FROM dbanon.release AS r
      JOIN latest AS l ON l.series <= r.release_id
     WHERE r.table_schema = %(table_schema)s
       AND r.table_name = %(table_name)s
       AND (r.served OR NOT EXISTS (SELECT FROM dbanon.history AS h WHERE h.release_id = r.release_id))
)
SELECT coalesce(bool_and(coalesce(r.relation_mark = m.mark
                                  AND r.relation_schema = %(schema)s
                                  AND r.relation_name = %(name)s
                                  AND r.overrides::jsonb ->> 'grants' = '[]'
                                  AND r.overrides::jsonb -> 'dataset' IS NULL
                                  AND r.policy -> 'labels' IS NULL
                                  AND r.policy -> 'anatomy' IS NULL, false)), false)
       AND NOT EXISTS (SELECT
                         FROM dbanon.release AS s
                        WHERE s.table_schema = %(table_schema)s
                          AND s.table_name = %(table_name)s
                          AND s.served
                          AND s.release_id NOT IN (SELECT k.release_id FROM known AS k))
       AND NOT EXISTS (SELECT
                         FROM pg_class AS c
                         JOIN pg_namespace AS n ON n.oid = c.relnamespace
                         JOIN pg_roles AS w
                           ON w.oid <> c.relowner
                          AND NOT w.rolsuper
                          AND pg_has_role(w.oid, c.relowner, 'MEMBER')
                        WHERE n.nspname = %(schema)s
                          AND c.relname = %(name)s
                          AND NOT has_any_column_privilege(w.oid, %(source)s::oid, 'SELECT'))
       AND NOT EXISTS (SELECT
                         FROM pg_namespace AS n
                        CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
                        WHERE n.nspname = 'dbanon_data'
                          AND a.grantee <> n.nspowner
                          AND NOT CASE a.grantee
                                  WHEN 0 THEN false
                                  ELSE has_any_column_privilege(a.grantee, %(source)s::oid, 'SELECT')
                                  END)
  FROM known AS k
  LEFT JOIN dbanon.release AS r ON r.release_id = k.release_id
  LEFT JOIN mark AS m ON true

-- name: mark_relation
-- Store the mark of the relation that serves a release.
UPDATE dbanon.release AS r
   SET relation_mark = ({mark})
 WHERE r.release_id = %(release)s

-- name: needed_schemas
-- Roles that still need USAGE on a schema, with an object that requires it. endings, comments: suffixes and comment
-- patterns of a release's relations. A schema is needed if the role has a right on an object in it, or if it has
-- other objects than releases; the schema dbanon, if the role can read another release.
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

-- name: private_readers
-- Roles with a right to read private relations or columns of them, other than their owners, or the keys and hashes of
-- persons, other than publishers; with the schema and the names of these relations. An empty name is PUBLIC.
WITH granted AS (
    SELECT c.oid, a.grantee, a.privilege_type
      FROM pg_class AS c
     CROSS JOIN LATERAL aclexplode(c.relacl) AS a
     UNION ALL
    SELECT k.attrelid, a.grantee, a.privilege_type
      FROM pg_attribute AS k
     CROSS JOIN LATERAL aclexplode(k.attacl) AS a
)
SELECT coalesce(r.rolname::text, ''), n.nspname::text, array_agg(DISTINCT concat_ws('.', n.nspname, quote_ident(c.relname)))
  FROM granted AS g
  JOIN pg_class AS c ON c.oid = g.oid AND c.relkind <> 'c' AND c.relowner <> g.grantee
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  LEFT JOIN pg_roles AS r ON r.oid = g.grantee
 WHERE g.privilege_type = 'SELECT'
   AND r.rolsuper IS NOT TRUE
   AND (n.nspname = 'dbanon_data'
        OR n.nspname = 'dbanon'
           AND c.relname IN ('history_key', 'history_leaver', 'history_member', 'replacement', 'sampling_key')
           AND NOT EXISTS (SELECT
                             FROM granted AS p
                             JOIN pg_class AS l ON l.oid = p.oid
                            WHERE l.relnamespace = n.oid
                              AND l.relname = 'release'
                              AND p.grantee = g.grantee
                              AND p.privilege_type = 'INSERT'))
 GROUP BY r.rolname, n.nspname
 ORDER BY 1, 2

-- name: readable
-- Test if the current role can read a relation and the ledger.
SELECT coalesce(bool_and(has_table_privilege(c.oid, 'SELECT')
                         AND has_schema_privilege(c.relnamespace, 'USAGE')), false)
       AND count(*) = 3
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon'
   AND c.relname IN ('release', 'taxonomy', 'taxonomy_node')

-- name: readers
-- Roles that can read one of some relations or a view of one, also through membership, except owners and roles that
-- can read the source anyway. A security_invoker view gives no access to other roles.
WITH RECURSIVE above (oid) AS (
    SELECT p.oid
      FROM unnest(%(relations)s::oid[]) AS p (oid)
     UNION
    SELECT w.ev_class
      FROM above AS a
      JOIN pg_depend AS d
        ON d.refclassid = 'pg_class'::regclass
       AND d.refobjid = a.oid
       AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite AS w ON w.oid = d.objid AND w.ev_type = '1'
),
entry AS MATERIALIZED (
    SELECT c.oid, c.relowner
      FROM above AS a
      JOIN pg_class AS c ON c.oid = a.oid
     WHERE NOT EXISTS (SELECT
                         FROM pg_options_to_table(c.reloptions) AS o
                        WHERE o.option_name = 'security_invoker'
                          AND o.option_value::boolean)
)
SELECT r.rolname::text
  FROM pg_roles AS r
 WHERE NOT r.rolsuper
   AND NOT has_any_column_privilege(r.oid, %(source)s::oid, 'SELECT')
   AND EXISTS (SELECT
                 FROM entry AS e
                WHERE NOT pg_has_role(r.oid, e.relowner, 'MEMBER')
                  AND EXISTS (SELECT
                                FROM pg_roles AS m
                               WHERE pg_has_role(r.oid, m.oid, 'MEMBER')
                                 AND has_any_column_privilege(m.oid, e.oid, 'SELECT')))

-- name: relation_mark
-- The database, a view, and the transaction that created its row type; no row if a right on the view or a column was
-- ever granted or revoked, also by default privileges, or if other objects depend on it. GRANT leaves relacl behind,
-- even after REVOKE; of a column it leaves the transaction that changed the column.
SELECT concat_ws('/', d.oid, c.oid, t.xmin) AS mark
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_type AS t ON t.oid = c.reltype
  JOIN pg_database AS d ON d.datname = current_database()
 WHERE n.nspname = %(schema)s
   AND c.relname = %(name)s
   AND c.relkind = 'v'
   AND c.relacl IS NULL
   AND NOT EXISTS (SELECT
                     FROM pg_attribute AS a
                    WHERE a.attrelid = c.oid
                      AND (a.attacl IS NOT NULL OR a.xmin <> t.xmin))
   AND NOT EXISTS (SELECT
                     FROM pg_depend AS d
                    WHERE ((d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)
                           OR (d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)))
                      AND NOT (d.classid = 'pg_type'::regclass AND d.objid IN (t.oid, t.typarray))
                      AND NOT (d.classid = 'pg_rewrite'::regclass
                               AND d.objid IN (SELECT w.oid FROM pg_rewrite AS w WHERE w.ev_class = c.oid)))

-- name: still_readable_by
-- The roles that can still read a relation or one of its columns.
SELECT r.name
  FROM unnest(%(roles)s::text[]) AS r (name)
 WHERE has_any_column_privilege(r.name::name, %(published)s::oid, 'SELECT')
 ORDER BY r.name

-- name: temporary
-- Test if a role may create temporary tables in this database; with its name.
SELECT has_database_privilege(%s::name, current_database(), 'TEMPORARY'), current_database()::text

-- name: unreadable_by
-- The roles that still cannot read a relation, because a right on it or its schema is missing.
SELECT r.name
  FROM unnest(%(roles)s::text[]) AS r (name)
  JOIN pg_class AS c ON c.oid = %(published)s
 WHERE NOT has_table_privilege(r.name::name, c.oid, 'SELECT')
    OR NOT has_schema_privilege(r.name::name, c.relnamespace, 'USAGE')
 ORDER BY r.name
