-- Policies, taxonomies, releases and settings in the schema dbanon.

-- name: extension_in
-- The extension that owns this schema, if any; public belongs to no extension in it.
SELECT e.extname::text
  FROM pg_extension AS e
  JOIN pg_namespace AS n ON n.oid = e.extnamespace
 WHERE n.nspname = %s
   AND n.nspname <> 'public'
 ORDER BY e.extname
 LIMIT 1

-- name: first_versions
-- Start the history of policies with the stored ones.
INSERT INTO dbanon.policy_version (table_schema, table_name, name, version, document)
SELECT p.table_schema, p.table_name, p.name, 1, p.document
  FROM dbanon.policy AS p

-- name: foreign_triggers
-- Triggers of other tables that call functions of the metadata's triggers. They were attached with an earlier
-- EXECUTE right. refuse_change is exempt, because publishers attach it.
SELECT t.tgname::text, n.nspname::text, c.relname::text, p.proname::text
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_class AS c ON c.oid = t.tgrelid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE p.pronamespace = to_regnamespace('dbanon')
   AND p.proname <> 'refuse_change'
   AND c.relnamespace <> p.pronamespace
 ORDER BY 2, 3, 1

-- name: missing_values
-- The values of a column that are not leaves of the newest version of a taxonomy, with their numbers of rows.
SELECT s.{column}::text AS value, count(*) AS rows
  FROM {table} AS s
 WHERE s.{column} IS NOT NULL
   AND NOT EXISTS (SELECT
                     FROM dbanon.taxonomy_node AS n
                    WHERE n.label = s.{column}::text
                      AND n.taxonomy_id = (SELECT t.taxonomy_id
                                             FROM dbanon.taxonomy AS t
                                            WHERE t.name = {taxonomy}
                                            ORDER BY t.version DESC
                                            LIMIT 1)
                      AND NOT EXISTS (SELECT
                                        FROM dbanon.taxonomy_node AS c
                                       WHERE c.taxonomy_id = n.taxonomy_id
                                         AND c.parent_id = n.node_id))
 GROUP BY 1
 ORDER BY 2 DESC, 1;

-- name: number_on
-- Advance the release numbers beyond those of any existing data.
SELECT setval(pg_get_serial_sequence('dbanon.release', 'release_id')::regclass, max(number)::bigint)
  FROM (
    SELECT substring(c.relname FROM '[0-9]+$')::numeric
      FROM pg_class AS c
     WHERE c.relnamespace = to_regnamespace('dbanon_data')
       AND c.relname NOT LIKE 'places%'
    UNION ALL
    SELECT r.release_id
      FROM dbanon.release AS r
  ) AS used (number)
 WHERE number < 2 ^ 53
HAVING max(number) > coalesce(
    pg_sequence_last_value(pg_get_serial_sequence('dbanon.release', 'release_id')::regclass), 0
)

-- name: parts
-- The existing parts of the metadata: schemas, tables, columns and functions, by name.
SELECT 'schema', n.nspname::text
  FROM pg_namespace AS n
 WHERE n.nspname IN ('dbanon', 'dbanon_data')
UNION ALL
SELECT 'table', c.relname::text
  FROM pg_class AS c
 WHERE c.relnamespace = to_regnamespace('dbanon')
   AND c.relkind = 'r'
UNION ALL
SELECT 'column', format('%s.%s', c.relname, a.attname)
  FROM pg_class AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid
 WHERE c.relnamespace = to_regnamespace('dbanon')
   AND c.relkind = 'r'
   AND a.attnum > 0
   AND NOT a.attisdropped
UNION ALL
SELECT 'function', p.proname::text
  FROM pg_proc AS p
 WHERE p.pronamespace = to_regnamespace('dbanon')

-- name: publishers
-- Roles with the rights to publish, as far as remaining tables show.
SELECT r.rolname
  FROM pg_roles AS r
 CROSS JOIN pg_namespace AS m
 CROSS JOIN pg_namespace AS d
  JOIN pg_class AS c
    ON c.relnamespace = m.oid
   AND c.relname = 'release'
 WHERE m.nspname = 'dbanon'
   AND d.nspname = 'dbanon_data'
   AND r.oid <> c.relowner
   AND EXISTS (SELECT
                 FROM aclexplode(m.nspacl) AS a
                WHERE a.grantee = r.oid
                  AND a.privilege_type = 'USAGE'
                  AND a.is_grantable)
   AND EXISTS (SELECT
                 FROM aclexplode(d.nspacl) AS a
                WHERE a.grantee = r.oid
                  AND a.privilege_type = 'CREATE')
   AND (c.relname = ANY (%(made)s::text[])
        OR EXISTS (SELECT
                     FROM aclexplode(c.relacl) AS a
                    WHERE a.grantee = r.oid
                      AND a.privilege_type = 'INSERT'))
 ORDER BY r.rolname

-- name: rights_on
-- The rights of a role on recreated tables and their sequences, as GRANT statements.
WITH made AS (
    SELECT c.oid
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
       AND c.relname = ANY (%(made)s::text[])
)
SELECT format('GRANT %%s ON dbanon.%%I TO %%I', a.privilege_type, c.relname, r.rolname)
  FROM pg_class AS c
 CROSS JOIN LATERAL aclexplode(c.relacl) AS a
  JOIN pg_roles AS r ON r.oid = a.grantee
 WHERE r.rolname = %(role)s
   AND (c.oid IN (SELECT m.oid FROM made AS m)
        OR c.oid IN (SELECT d.objid
                       FROM pg_depend AS d
                       JOIN made AS m ON m.oid = d.refobjid
                      WHERE d.classid = 'pg_class'::regclass
                        AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')))

-- name: state
-- Test if the metadata schema is installed and readable; with its stamp.
SELECT c.oid IS NOT NULL,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       obj_description(n.oid, 'pg_namespace')
  FROM pg_namespace AS n
  LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'alembic_version'
 WHERE n.nspname = 'dbanon'

-- name: strangers
-- Parts of the metadata that an untrusted role owns, including functions of its triggers. Whoever replaces a check
-- function can let it pass anything, and run code as the publishing role.
WITH owned (name, owner) AS (
    SELECT format('schema %I', n.nspname), n.nspowner
      FROM pg_namespace AS n
     WHERE n.nspname IN ('dbanon', 'dbanon_data')
    UNION ALL
    SELECT format('%I.%I', n.nspname, p.proname), p.proowner
      FROM pg_proc AS p
      JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE n.nspname = 'dbanon'
    UNION ALL
    SELECT format('%I.%I', n.nspname, c.relname), c.relowner
      FROM pg_class AS c
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
    UNION ALL
    SELECT format('trigger %I of %I.%I', t.tgname, n.nspname, c.relname), p.proowner
      FROM pg_trigger AS t
      JOIN pg_proc AS p ON p.oid = t.tgfoid
      JOIN pg_class AS c ON c.oid = t.tgrelid
      JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'dbanon'
)
SELECT o.name, r.rolname
  FROM owned AS o
  JOIN pg_roles AS r ON r.oid = o.owner
 WHERE NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user)
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
 ORDER BY o.name LIKE 'schema %' DESC, o.name
 LIMIT 1

-- name: views_of_data
-- Views of release data outside of the private schema, each with the number of the data.
SELECT DISTINCT n.nspname::text, v.relname::text, substring(c.relname FROM '[0-9]+$')::bigint
  FROM pg_depend AS d
  JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
  JOIN pg_class AS v ON v.oid = r.ev_class
  JOIN pg_namespace AS n ON n.oid = v.relnamespace
  JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
 WHERE c.relnamespace = to_regnamespace('dbanon_data')
   AND v.relnamespace <> c.relnamespace
   AND c.relname ~ '^[a-z]+_[0-9]{1,18}$'
   AND c.relname !~ '^retired_'
 ORDER BY 1, 2, 3
