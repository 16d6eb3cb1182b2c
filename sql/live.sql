-- Live views: source, rows and groups joined.

-- name: altered_body
-- What was added since is no matter.
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT a.kind, a.relation, a.name
      FROM (SELECT m.relation, m.kind, m.name, m.state
              FROM {marks} AS m
            EXCEPT
            ({now})) AS a;
END

-- name: count_shown
-- The number of rows that a live release shows, and that are hidden with their classes.
SELECT count(*) FILTER (WHERE g.shown),
       count(*) FILTER (WHERE NOT g.shown),
       count(DISTINCT g.group_id) FILTER (WHERE NOT g.shown)
  FROM ONLY {rows} AS r
  JOIN ONLY {groups} AS g ON g.group_id = r.group_id

-- name: create_altered
-- Name the differences from the stored fingerprint. It runs with the rights of the view's owner, because row-level
-- security is checked for these.
CREATE OR REPLACE FUNCTION {altered}()
RETURNS TABLE (kind text, relation oid, name text)
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}

-- name: create_marks
-- The source fingerprint that the guards of a live view rely on.
CREATE TABLE {marks} (
    relation oid,
    kind text,
    name text,
    state text
)

-- name: create_members
-- The private view from which guards read the source. A function finds tables by name at each planning, and the
-- owner of the schema can rename them; a view is bound to its tables.
CREATE VIEW {members} AS
{live}

-- name: keeps_marks
-- Test if the function that names differences runs with the rights of its owner, whoever calls it, and if reading the
-- fingerprint runs nothing of the owner's.
SELECT EXISTS (SELECT
                 FROM pg_proc AS p
                WHERE p.oid = to_regproc(%(altered)s)
                  AND p.prosecdef)
       AND EXISTS (SELECT
                     FROM pg_class AS c
                    WHERE c.oid = to_regclass(%(marks)s)
                      AND c.relkind = 'r'
                      AND NOT (c.relrowsecurity OR c.relhassubclass OR c.relhasindex))

-- name: live_members
-- The class of each row of the release, with the columns of its models, from the present source.
SELECT r.group_id{columns}
  FROM ONLY {source} AS s
  JOIN {rows} AS r ON {join}

-- name: live_rows
-- The live source with its stored recodings, without hidden classes.
SELECT {columns}
  FROM ONLY {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 WHERE g.shown
   AND {seen}()

-- name: live_seen_body
-- What a live view is served from is never empty. And a snapshot knows the catalogs of its time, but
-- the file of a table is what it is now: one that is older than the file finds rows that it may not
-- see, or misses those that it may.
BEGIN
    IF NOT EXISTS (SELECT FROM ONLY {groups})
       OR EXISTS (SELECT
                    FROM pg_class AS c
                   WHERE c.oid = ANY ({tables}::oid[])
                     AND c.relfilenode <> pg_relation_filenode(c.oid)) THEN
        RAISE EXCEPTION 'could not serialize access: a live view or its source was made anew meanwhile'
            USING ERRCODE = 'serialization_failure',
                  HINT = 'Begin a new transaction.';
    END IF;
    RETURN NOT EXISTS (SELECT FROM {altered}());
END

-- name: merge_groups
-- Drop the groups that publish the same labels as an earlier one, which has their rows.
DELETE FROM {groups} AS d
 USING (SELECT g.group_id, min(g.group_id) OVER (PARTITION BY {columns}) AS class
          FROM {groups} AS g) AS a
 WHERE a.group_id = d.group_id
   AND a.class < a.group_id

-- name: merge_rows
-- Make one class of all groups that publish the same labels.
UPDATE {rows} AS r
   SET group_id = a.class
  FROM (SELECT g.group_id, min(g.group_id) OVER (PARTITION BY {columns}) AS class
          FROM {groups} AS g) AS a
 WHERE a.group_id = r.group_id
   AND a.class < a.group_id

-- name: note_marks
-- Store the source fingerprint, after the guards exist.
INSERT INTO {marks} (relation, kind, name, state)
{now}

-- name: place_rows
-- Store the partition of each row: after detaching one, its key may recur elsewhere. Rows are read through the
-- parent, under a name that nobody else can reassign.
UPDATE {rows} AS r
   SET leaf = l.number
  FROM {source} AS s
  JOIN unnest({leaves}::oid[]) WITH ORDINALITY AS l (relation, number) ON l.relation = s.tableoid
 WHERE {join}

-- name: publish_view
-- Serve the live source. OFFSET 0 keeps conditions of readers above it: below, PostgreSQL would estimate them with
-- statistics of the source, hidden rows included, and EXPLAIN would disclose the estimates.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
{live}
OFFSET 0

-- name: source_marks
-- What the guards of a live view rely on, as it is now. A table that is written anew gets another
-- file, whatever becomes of its values. A trigger that is disabled and enabled again, or a function
-- that is replaced, is another version of its row in the catalog; so is the view by which they read.
SELECT c.oid AS relation, 'file' AS kind, ''::text AS name,
       concat_ws(' ', c.relpersistence, pg_relation_filenode(c.oid)) AS state
  FROM pg_class AS c
 WHERE c.oid = ANY ({tables}::oid[])
 UNION ALL
SELECT c.oid, 'policy', '', row_security_active(c.oid)::text
  FROM pg_class AS c
 WHERE c.oid = ANY ({tables}::oid[])
   AND c.relkind = 'r'
 UNION ALL
SELECT a.attrelid, 'column', a.attname::text,
       concat_ws(' ', a.attnum, a.atttypid, a.atttypmod, a.attcollation)
  FROM pg_attribute AS a
 WHERE a.attrelid = ANY ({tables}::oid[])
   AND a.attname = ANY ({columns}::text[])
 UNION ALL
SELECT n.conrelid, 'key', '', n.oid::text
  FROM pg_constraint AS n
 WHERE n.conrelid = ANY ({tables}::oid[])
   AND n.contype = 'p'
 UNION ALL
SELECT t.tgrelid, 'trigger', t.tgname::text, concat_ws(' ', t.tgenabled, t.xmin)
  FROM pg_trigger AS t
 WHERE t.tgrelid = ANY ({tables}::oid[])
   AND t.tgname = ANY ({triggers}::text[])
 UNION ALL
SELECT DISTINCT t.tgrelid, 'function', p.proname::text, p.xmin::text
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
 WHERE t.tgrelid = ANY ({tables}::oid[])
   AND t.tgname = ANY ({triggers}::text[])
 UNION ALL
SELECT r.ev_class, 'view', '', r.xmin::text
  FROM pg_rewrite AS r
 WHERE r.ev_class = ANY ({tables}::oid[])
   AND r.rulename = '_RETURN'
 UNION ALL
SELECT DISTINCT a.attrelid, 'label', a.attname::text, concat_ws(' ', e.oid, e.enumlabel)
  FROM pg_attribute AS a
  JOIN pg_type AS t ON t.oid = a.atttypid
  JOIN pg_enum AS e ON e.enumtypid IN (t.oid, t.typbasetype, t.typelem)
 WHERE a.attrelid = ANY ({tables}::oid[])
   AND a.attname = ANY ({enums}::text[])
