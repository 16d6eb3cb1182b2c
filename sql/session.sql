-- Settings and locks of sessions.

-- name: acting_superuser
-- The superuser of this session, if there is one.
SELECT rolname
  FROM pg_roles
 WHERE rolsuper
   AND rolname IN (session_user, current_user)
 LIMIT 1

-- name: allow_memory
-- Raise work_mem of this transaction for sorts and hash tables of millions of rows.
SELECT set_config('work_mem', '256MB', true)
 WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('256MB')

-- name: grant_approval
-- What a role needs to approve policies, and to read what it approves.
GRANT USAGE ON SCHEMA dbanon TO {role};
GRANT SELECT ON dbanon.alembic_version, dbanon.policy, dbanon.policy_version, dbanon.policy_approval TO {role};
GRANT SELECT ON dbanon.approval_demand, dbanon.taxonomy, dbanon.taxonomy_node, dbanon.release TO {role};
GRANT INSERT ON dbanon.policy_approval TO {role};

-- name: grant_everyday
-- What an ordinary role needs to publish; the grant options let it hand releases to readers.
GRANT USAGE ON SCHEMA dbanon TO {role} WITH GRANT OPTION;
GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {role};
GRANT INSERT, UPDATE, DELETE ON dbanon.taxonomy, dbanon.taxonomy_node, dbanon.policy, dbanon.release TO {role};
GRANT INSERT, UPDATE ON dbanon.publishing TO {role};
GRANT INSERT ON dbanon.verification, dbanon.policy_version, dbanon.spending TO {role};
GRANT INSERT ON dbanon.history, dbanon.history_class, dbanon.history_figures TO {role};
GRANT INSERT ON dbanon.history_key, dbanon.history_member, dbanon.history_value TO {role};
GRANT INSERT, DELETE ON dbanon.history_leaver, dbanon.history_pool, dbanon.replacement TO {role};
GRANT DELETE ON dbanon.history_figures TO {role};
GRANT INSERT, UPDATE, DELETE ON dbanon.schedule, dbanon.job TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA dbanon TO {role};
GRANT USAGE, CREATE ON SCHEMA dbanon_data TO {role};
GRANT USAGE, CREATE ON SCHEMA {views} TO {role} WITH GRANT OPTION;

-- And for each table that is to be published, with names of your own:
--   GRANT USAGE ON SCHEMA clinic TO publisher;
--   GRANT SELECT ON clinic.patients TO publisher;
-- And, where TEMPORARY was revoked from PUBLIC, by the owner of the database:
--   GRANT TEMPORARY ON DATABASE clinic TO publisher;

-- name: holders
-- Sessions with a lock on one of the relations, with their roles; a prepared transaction has no process.
SELECT DISTINCT l.pid, coalesce(a.usename::text, '')
  FROM pg_locks AS l
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'relation'
   AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND l.relation = ANY (%s::oid[])
   AND l.granted
   AND l.pid IS DISTINCT FROM pg_backend_pid()
 ORDER BY l.pid

-- name: note_memory
-- Store the present memory for hash tables.
SELECT set_config('dbanon.work_mem', current_setting('work_mem'), true)

-- name: restore_memory
-- Restore the previous memory for hash tables.
SELECT set_config('work_mem', current_setting('dbanon.work_mem'), true)

-- name: role_facts
-- The current role: its name, true for a superuser, and true if it may create schemas, or relations in each of the
-- named schemas.
SELECT r.rolname::text,
       r.rolsuper,
       has_database_privilege(r.oid, current_database(), 'CREATE')
           OR NOT EXISTS (SELECT
                            FROM unnest(%(schemas)s::text[]) AS s (name)
                            LEFT JOIN pg_namespace AS n ON n.nspname = s.name
                           WHERE n.oid IS NULL
                              OR NOT has_schema_privilege(r.oid, n.oid, 'USAGE')
                              OR NOT has_schema_privilege(r.oid, n.oid, 'CREATE'))
  FROM pg_roles AS r
 WHERE r.rolname = current_user

-- name: sample_little
-- Let ANALYZE sample few rows of temporary tables in this transaction, because they serve few statements.
SELECT set_config('default_statistics_target', '10', true)

-- name: session_settings
-- Override the settings of role, database and server; unknown ones give NULL. Settings with the right value are
-- skipped, because changing them might need rights; and so is the memory for temporary tables once the session has
-- such a schema, as after a login trigger that uses one, because it is then fixed.
SELECT pg_catalog.set_config(s.name, s.value, false)
  FROM (VALUES {settings}) AS s (name, value)
 WHERE pg_catalog.current_setting(s.name, true) OPERATOR(pg_catalog.<>) s.value
   AND (s.name OPERATOR(pg_catalog.<>) 'temp_buffers' OR pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0)
UNION ALL
SELECT pg_catalog.set_config('synchronous_commit', 'local', false)
 WHERE pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off'

-- name: takes_writes
-- Test if this server accepts writes, unlike a standby.
SELECT current_setting('transaction_read_only') = 'off'

-- name: transaction_marks
-- The number of the open transaction, NULL before its first write, and the run of the server.
SELECT pg_current_xact_id_if_assigned()::text, pg_postmaster_start_time()

-- name: transaction_status
-- The outcome of a transaction; NULL after a restart of the server, or if it is too long ago.
SELECT CASE WHEN pg_postmaster_start_time() = %(run)s THEN pg_xact_status(%(number)s::text::xid8) END
