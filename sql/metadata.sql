-- Policies, taxonomies, releases and settings in the schema dbanon.

-- name: accounts
-- The numbers of entries that the spending of each table must have.
SELECT a.table_schema, a.table_name, a.table_oid, a.entries
  FROM dbanon.account AS a

-- name: add_policy_version
-- Record a policy as the next version of its name; without a document, it was dropped.
INSERT INTO dbanon.policy_version (table_schema, table_name, name, version, document)
VALUES (%(schema)s,
        %(table)s,
        %(name)s,
        (SELECT coalesce(max(v.version), 0) + 1
           FROM dbanon.policy_version AS v
          WHERE v.table_schema = %(schema)s
            AND v.table_name = %(table)s
            AND v.name = %(name)s),
        %(document)s)

-- name: add_release
-- Record a release as the served one of its relation; returns what only the server knows, and the policy as stored.
INSERT INTO dbanon.release (release_id, table_schema, table_name, relation_schema, relation_name, kind, policy,
                            overrides, taxonomies, seed, checks, loss, fingerprint, growth, source_state, content,
                            data_id, policy_version, served)
VALUES (%(release)s,
        %(schema)s,
        %(table)s,
        %(relation_schema)s,
        %(relation)s,
        %(kind)s,
        %(policy)s,
        %(overrides)s,
        %(taxonomies)s,
        %(seed)s,
        %(checks)s,
        %(loss)s,
        %(fingerprint)s,
        %(growth)s,
        %(state)s,
        %(content)s,
        %(data_id)s,
        %(policy_version)s,
        true)
RETURNING created_at,
          created_by,
          policy,
          (SELECT count(*)
             FROM dbanon.release AS older
            WHERE older.table_schema = %(schema)s
              AND older.table_name = %(table)s
              AND older.release_id < %(release)s)

-- name: add_spending
-- Record spent privacy budget.
INSERT INTO dbanon.spending (table_oid, table_schema, table_name, epsilon, columns)
VALUES (%(oid)s, %(schema)s, %(table)s, %(epsilon)s, %(columns)s)

-- name: add_taxonomy
-- Record the next version of a taxonomy, which is none of a deleted one that a release names.
INSERT INTO dbanon.taxonomy (name, version, n_leaves, height)
SELECT %(name)s::text,
       greatest((SELECT max(t.version) FROM dbanon.taxonomy AS t WHERE t.name = %(name)s),
                (SELECT max((r.taxonomies ->> %(name)s)::int) FROM dbanon.release AS r),
                0) + 1,
       %(leaves)s::int,
       %(height)s::int
RETURNING taxonomy_id, version

-- name: add_verification
-- Record a check of a release.
INSERT INTO dbanon.verification (release_id, verdict, results, reason)
VALUES (%(release)s, %(verdict)s, %(results)s, %(reason)s)

-- name: approval_of_release
-- The version of a policy with the digest of a release's taxonomies, and its first approval.
SELECT v.name,
       v.version,
       v.stored_by AS author,
       g.digest,
       a.approved_by,
       a.approved_at,
       EXISTS (SELECT FROM dbanon.approval_demand) AS is_demanded
  FROM dbanon.policy_version AS v
 CROSS JOIN LATERAL (SELECT dbanon.policy_digest(v.document, %(taxonomies)s) AS digest) AS g
  LEFT JOIN dbanon.policy_approval AS a
    ON (a.table_schema, a.table_name, a.name, a.version) = (v.table_schema, v.table_name, v.name, v.version)
   AND a.digest = g.digest
   AND a.approved_by <> v.stored_by
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(table)s
   AND v.name = %(name)s
   AND v.version = %(version)s
   AND v.document IS NOT NULL
 ORDER BY a.approved_at
 LIMIT 1

-- name: approve
-- Approve a version of a policy with its digest, once by each role.
INSERT INTO dbanon.policy_approval (table_schema, table_name, name, version, digest)
VALUES (%(schema)s, %(table)s, %(name)s, %(version)s, %(digest)s)
ON CONFLICT DO NOTHING

-- name: copy_nodes
-- Store the nodes of a taxonomy.
COPY dbanon.taxonomy_node (taxonomy_id, {columns}) FROM STDIN

-- name: demand_again
-- Restore a lost demand for approvals if anything was ever approved.
INSERT INTO dbanon.approval_demand (is_only)
SELECT true
 WHERE EXISTS (SELECT FROM dbanon.policy_approval)

-- name: demand_approval
-- Demand that policies are approved before they publish.
INSERT INTO dbanon.approval_demand (is_only)
VALUES (true)
ON CONFLICT DO NOTHING

-- name: demands_approval
-- Test if policies must be approved before they publish.
SELECT EXISTS (SELECT FROM dbanon.approval_demand)

-- name: drop_policy
-- Delete a policy of a table.
DELETE FROM dbanon.policy AS p
 WHERE p.table_schema = %(schema)s
   AND p.table_name = %(table)s
   AND p.name = %(name)s

-- name: drop_taxonomy
-- Delete all versions of a taxonomy.
DELETE FROM dbanon.taxonomy AS t
 WHERE t.name = %s

-- name: end_demand
-- Let policies publish without an approval.
DELETE FROM dbanon.approval_demand AS d
 WHERE d.is_only

-- name: entries
-- Releases without their policies, newest first.
SELECT r.release_id,
       r.table_schema,
       r.table_name,
       r.relation_schema,
       r.relation_name,
       r.kind,
       r.served,
       r.content,
       r.data_id,
       r.source_state,
       r.overrides,
       coalesce(r.policy ->> 'name', 'default') AS policy_name
  FROM dbanon.release AS r
 WHERE {selection}
 ORDER BY r.release_id DESC

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

-- name: has_account
-- Test if any budget was spent on a table of that name.
SELECT EXISTS (SELECT
                 FROM dbanon.spending AS s
                WHERE s.table_schema = %(schema)s
                  AND s.table_name = %(table)s)
    OR EXISTS (SELECT
                 FROM dbanon.account AS a
                WHERE a.table_schema = %(schema)s
                  AND a.table_name = %(table)s)

-- name: live_releases
-- The numbers of the releases of a table that were live views.
SELECT r.release_id
  FROM dbanon.release AS r
 WHERE r.table_schema = %s
   AND r.table_name = %s
   AND r.kind = 'view'

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

-- name: newest_taxonomies
-- The newest version of each named taxonomy.
SELECT t.name, max(t.version)
  FROM dbanon.taxonomy AS t
 WHERE t.name = ANY (%s::text[])
 GROUP BY t.name

-- name: next_release_id
-- Take the next release number.
SELECT nextval(pg_get_serial_sequence('dbanon.release', 'release_id'))

-- name: note_compared
-- Record the source and the counts of a refresh that had nothing to publish.
UPDATE dbanon.release
   SET compared = %(fingerprint)s,
       growth = %(growth)s,
       source_state = %(state)s
 WHERE release_id = %(release)s

-- name: note_loss
-- Record an unknown spending for each table that ever had a policy with a budget.
INSERT INTO dbanon.spending (table_oid, table_schema, table_name, epsilon, columns)
SELECT 0, p.table_schema, p.table_name, 'NaN'::numeric, '{}'::text[]
  FROM dbanon.policy AS p
 WHERE p.document ? 'budget'
 UNION
SELECT 0, v.table_schema, v.table_name, 'NaN'::numeric, '{}'::text[]
  FROM dbanon.policy_version AS v
 WHERE v.document ? 'budget'

-- name: note_search
-- Record the state of a source with the result of a search, unless it is another by now.
UPDATE dbanon.release
   SET source_state = %(state)s
 WHERE release_id = %(release)s
   AND source_state ->> 'snapshot' = %(snapshot)s

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

-- name: open_accounts
-- Restore lost numbers of entries from the entries of spending.
INSERT INTO dbanon.account (table_schema, table_name, table_oid, entries)
SELECT s.table_schema, s.table_name, max(s.table_oid), max(s.number)
  FROM dbanon.spending AS s
 WHERE s.number > 0
 GROUP BY s.table_schema, s.table_name

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

-- name: policies
-- The stored policies of all tables, or the named one of a table; each compared with its newest version, with the
-- first approval of it. The digest is NULL unless an approval is demanded, or the digest is asked for.
SELECT p.table_schema,
       p.table_name,
       p.name,
       p.document,
       p.baseline,
       p.updated_at,
       coalesce(p.document = v.document, false) AS is_newest,
       v.version,
       v.stored_by AS author,
       d.demanded_by IS NOT NULL AS is_demanded,
       g.digest,
       a.approved_by,
       a.approved_at
  FROM dbanon.policy AS p
  LEFT JOIN dbanon.approval_demand AS d ON true
  LEFT JOIN LATERAL (SELECT v.version, v.document, v.stored_by
                       FROM dbanon.policy_version AS v
                      WHERE v.table_schema = p.table_schema
                        AND v.table_name = p.table_name
                        AND v.name = p.name
                      ORDER BY v.version DESC
                      LIMIT 1) AS v ON true
  LEFT JOIN LATERAL (SELECT dbanon.policy_digest(v.document) AS digest
                      WHERE d.demanded_by IS NOT NULL OR %(digest)s) AS g ON true
  LEFT JOIN LATERAL (SELECT a.approved_by, a.approved_at
                       FROM dbanon.policy_approval AS a
                      WHERE a.table_schema = p.table_schema
                        AND a.table_name = p.table_name
                        AND a.name = p.name
                        AND a.version = v.version
                        AND a.digest = g.digest
                        AND a.approved_by <> v.stored_by
                      ORDER BY a.approved_at
                      LIMIT 1) AS a ON true
 WHERE %(table)s::text IS NULL
    OR p.table_schema = %(schema)s AND p.table_name = %(table)s AND p.name = %(name)s
 ORDER BY p.table_schema, p.table_name, p.name

-- name: policies_naming
-- The tables with policies that contain a document.
SELECT DISTINCT p.table_schema, p.table_name
  FROM dbanon.policy AS p
 WHERE p.document @> %s
 ORDER BY p.table_schema, p.table_name

-- name: policies_of_releases
-- The policies of all releases of a table.
SELECT r.release_id, r.policy
  FROM dbanon.release AS r
 WHERE r.table_schema = %s
   AND r.table_name = %s

-- name: policy_approvals
-- The approvals of the policies of a table, or of one name, unless it is NULL.
SELECT a.approved_at AS at, a.approved_by AS by, a.name AS policy, 'approved' AS operation, a.version
  FROM dbanon.policy_approval AS a
 WHERE a.table_schema = %(schema)s
   AND a.table_name = %(table)s
   AND (%(name)s::text IS NULL OR a.name = %(name)s)

-- name: policy_names
-- The names of the policies of a table.
SELECT p.name
  FROM dbanon.policy AS p
 WHERE p.table_schema = %s
   AND p.table_name = %s
 ORDER BY p.name

-- name: policy_versions
-- The versions of the policies of a table, newest first; of one name, unless it is NULL.
SELECT v.name, v.version, v.document, v.stored_at, v.stored_by
  FROM dbanon.policy_version AS v
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(table)s
   AND (%(name)s::text IS NULL OR v.name = %(name)s)
 ORDER BY v.stored_at DESC, v.name, v.version DESC

-- name: pool_since
-- The time since a release of a relation last had new persons.
SELECT now() - max(r.created_at)
  FROM dbanon.release AS r
 WHERE r.relation_schema = %s
   AND r.relation_name = %s
   AND coalesce((r.growth ->> 'inserted')::int, 1) > 0

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

-- name: releases
-- Releases with their policies, newest first, and the number of earlier ones of the same table.
SELECT r.release_id,
       r.table_schema,
       r.table_name,
       r.relation_schema,
       r.relation_name,
       r.kind,
       r.served,
       r.content,
       r.data_id,
       r.source_state,
       r.overrides,
       coalesce(r.policy ->> 'name', 'default') AS policy_name,
       r.policy,
       r.seed,
       r.checks,
       r.loss,
       r.taxonomies,
       r.fingerprint,
       r.compared,
       r.growth,
       r.policy_version,
       r.created_at,
       r.created_by,
       (SELECT count(*)
          FROM dbanon.release AS older
         WHERE older.table_schema = r.table_schema
           AND older.table_name = r.table_name
           AND older.release_id < r.release_id) AS earlier
  FROM dbanon.release AS r
 WHERE {selection}
 ORDER BY r.release_id DESC

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

-- name: sampling_key
-- The secret key for drawing samples.
SELECT k.key
  FROM dbanon.sampling_key AS k

-- name: save_baseline
-- Store the shape of the table of a policy.
UPDATE dbanon.policy
   SET baseline = %(baseline)s
 WHERE table_schema = %(schema)s
   AND table_name = %(table)s
   AND name = %(name)s

-- name: save_policy
-- Store or replace a policy.
INSERT INTO dbanon.policy (table_schema, table_name, name, document)
VALUES (%(schema)s, %(table)s, %(name)s, %(document)s)
ON CONFLICT (table_schema, table_name, name) DO UPDATE
   SET document = excluded.document,
       updated_at = now()

-- name: selection
-- The condition for releases of a number, a table, a relation, or served ones; NULL restricts nothing.
(%(release)s::bigint IS NULL OR r.release_id = %(release)s)
   AND (%(table)s::text IS NULL OR r.table_schema = %(schema)s AND r.table_name = %(table)s)
   AND (%(relation)s::text IS NULL OR r.relation_schema = %(relation_schema)s AND r.relation_name = %(relation)s)
   AND (r.served OR NOT %(served)s)

-- name: serves_data
-- Test if a served release uses the private tables of a number.
SELECT EXISTS (SELECT
                 FROM dbanon.release AS r
                WHERE r.data_id = %s
                  AND r.served)

-- name: spending
-- The entries of spent privacy budget; 0 as number: the spending is unknown.
SELECT s.table_schema, s.table_name, s.table_oid, s.epsilon, s.number
  FROM dbanon.spending AS s

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

-- name: taxonomies
-- All versions of all taxonomies, newest first within a name.
SELECT t.name, t.version, t.n_leaves, t.height, t.created_at
  FROM dbanon.taxonomy AS t
 ORDER BY t.name, t.version DESC

-- name: taxonomy_nodes
-- The nodes of named versions of taxonomies, in preorder.
SELECT t.name, {columns}
  FROM dbanon.taxonomy AS t
  JOIN dbanon.taxonomy_node AS n ON n.taxonomy_id = t.taxonomy_id
  JOIN unnest(%s::text[], %s::int[]) AS w (name, version)
    ON w.name = t.name
   AND w.version = t.version
 ORDER BY t.name, n.node_id

-- name: verifications
-- The checks of a release, newest first.
SELECT v.release_id, v.verdict, v.results, v.reason, v.verified_at, v.verified_by
  FROM dbanon.verification AS v
 WHERE v.release_id = %s
 ORDER BY v.verification_id DESC

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

-- name: withdraw
-- Mark a release as no longer served.
UPDATE dbanon.release
   SET served = false
 WHERE release_id = %s
   AND served

-- name: withdraw_served
-- Mark the release that a relation serves as no longer served.
UPDATE dbanon.release
   SET served = false
 WHERE relation_schema = %(relation_schema)s
   AND relation_name = %(relation)s
   AND served
