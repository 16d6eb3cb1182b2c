-- Private copies, groups and rows of releases, their seals, and the relations that serve them.

-- name: armed_guards
-- The number of required triggers of a live view that are enabled as required.
SELECT count(*)
  FROM unnest(%s::oid[], %s::text[], %s::text[]) AS needed (relation, name, mode)
  JOIN pg_trigger AS t ON t.tgrelid = needed.relation AND t.tgname = needed.name
 WHERE t.tgenabled = left(needed.mode, 1)::"char"

-- name: bind_release
-- Give the copy a type of its own: PostgreSQL changes no column of a typed table, and gives it no parent.
DO {body}

-- name: bind_release_body
-- Copy the columns into a type, and hold the table to it.
DECLARE
    columns text;
BEGIN
    SELECT string_agg(format('%I %s%s',
                             a.attname,
                             format_type(a.atttypid, a.atttypmod),
                             CASE WHEN c.oid IS NOT NULL
                                  THEN format(' COLLATE %I.%I', n.nspname, c.collname) END),
                      ', ' ORDER BY a.attnum)
      INTO columns
      FROM pg_attribute AS a
      LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
      LEFT JOIN pg_namespace AS n ON n.oid = c.collnamespace
     WHERE a.attrelid = {release_name}::regclass
       AND a.attnum > 0
       AND NOT a.attisdropped;
    EXECUTE format('CREATE TYPE %s AS (%s)', {shape_name}, columns);
    ALTER TABLE {release} OF {shape};
END

-- name: broken_seals
-- Differences from the published state, one column for each way to open a private copy or to change its view.
-- Servers before 16 print the columns of a view with the alias of their relation.
SELECT c.reloftype = 0,
       NOT EXISTS (SELECT
                     FROM pg_trigger AS t
                    WHERE t.tgrelid = c.oid
                      AND t.tgname = %(trigger)s
                      AND t.tgenabled = 'A'
                      AND t.tgtype = 62
                      AND t.tgqual IS NULL
                      AND t.tgfoid = to_regprocedure('dbanon.refuse_change()')),
       c.relchecks > 0
           OR EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid)
           OR EXISTS (SELECT
                        FROM pg_trigger AS t
                       WHERE t.tgrelid = c.oid
                         AND t.tgname <> %(trigger)s),
       c.relrowsecurity OR c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid)),
       EXISTS (SELECT
                 FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
                WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
           OR EXISTS (SELECT
                        FROM pg_attribute AS k
                       CROSS JOIN LATERAL aclexplode(k.attacl) AS a
                       WHERE k.attrelid = c.oid
                         AND a.privilege_type IN ('INSERT', 'UPDATE')),
       ARRAY(SELECT k.attname FROM pg_attribute AS k
              WHERE k.attrelid = c.oid AND k.attnum > 0 AND NOT k.attisdropped
                AND (k.attname !~ '^_*dbanon_class$'
                     OR k.atttypid <> 'pg_catalog.int8'::regtype
                     OR k.attnum < (SELECT max(l.attnum) FROM pg_attribute AS l WHERE l.attrelid = c.oid))
              ORDER BY 1)
           <> ARRAY(SELECT k.attname FROM pg_attribute AS k
                     WHERE k.attrelid = %(view)s AND k.attnum > 0 AND NOT k.attisdropped ORDER BY 1),
       o.is_ours IS NOT TRUE,
       NOT EXISTS (SELECT
                     FROM pg_proc AS p
                    WHERE p.pronamespace = c.relnamespace
                      AND p.proname = %(seen)s
                      AND p.pronargs = 0
                      AND p.proowner = c.relowner
                      AND p.prosecdef
                      AND p.provolatile = 's'
                      AND p.proconfig = ARRAY['search_path=pg_catalog, pg_temp']
                      AND p.prosrc = %(body)s),
       EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = %(view)s AND w.rulename <> '_RETURN')
           OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = %(view)s),
       EXISTS (SELECT
                 FROM pg_class AS v
                CROSS JOIN LATERAL aclexplode(v.relacl) AS a
                WHERE v.oid = %(view)s
                  AND a.grantee <> v.relowner
                  AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
  FROM pg_class AS c
 CROSS JOIN LATERAL (
       SELECT bool_or(v.text = regexp_replace(v.published, '\s+', ' ', 'g'))
         FROM (SELECT regexp_replace(pg_get_viewdef(%(view)s::oid), '\s+', ' ', 'g'),
                      format(' SELECT %%s FROM ONLY %%s s WHERE dbanon_data.%%s();',
                             string_agg(p.prefix || quote_ident(k.attname), ', ' ORDER BY k.attnum),
                             c.oid::regclass, %(seen)s::text)
                 FROM unnest(ARRAY['', 's.']) AS p (prefix)
                CROSS JOIN pg_attribute AS k
                WHERE k.attrelid = %(view)s
                  AND k.attnum > 0
                  AND NOT k.attisdropped
                GROUP BY p.prefix) AS v (text, published)
       ) AS o (is_ours)
 WHERE c.oid = to_regclass(%(release)s)

-- name: columns_of_relation
-- The columns of a relation in order, each with type and collation as in a cast.
SELECT a.attname::text,
       concat_ws(' COLLATE ', format_type(a.atttypid, a.atttypmod),
                 (SELECT format('%%I.%%I', n.nspname, l.collname)
                    FROM pg_collation AS l
                    JOIN pg_namespace AS n ON n.oid = l.collnamespace
                    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typcollation <> l.oid
                   WHERE l.oid = a.attcollation))
  FROM pg_attribute AS a
 WHERE a.attrelid = %(relation)s
   AND a.attnum > 0
   AND NOT a.attisdropped
 ORDER BY a.attnum

-- name: composed_word
-- A text in Unicode's composed form, which few texts do not have.
CASE WHEN octet_length({text}) = length({text}) OR {text} IS NORMALIZED THEN {text} ELSE normalize({text}) END

-- name: copy_sums
-- The rows of a private copy, and order-independent sums of their hashes without and with the class number, by the
-- transaction that wrote them.
SELECT s.written_by::text, count(*), sum(hashtextextended('' COLLATE "C", s.cells)),
       sum(hashtextextended('' COLLATE "C", s.cells # hashint8extended(s.class, 0)))
  FROM (SELECT t.xmin AS written_by, {cells} AS cells, t.{class_column} AS class
          FROM ONLY {release} AS t
        OFFSET 0) AS s
 GROUP BY s.written_by

-- name: copy_writers
-- The transactions that wrote the rows of a private copy, and the number of rows of each.
SELECT t.xmin::text, count(*)
  FROM ONLY {release} AS t
 GROUP BY t.xmin

-- name: create_draft
-- The values for the copy, by code; dropped before the copy is served.
CREATE UNLOGGED TABLE {draft} AS
SELECT 0 AS code{columns}
  FROM {source} AS s
  WITH NO DATA

-- name: create_groups
-- The private values of a release, one row per group, each column in its published type.
CREATE TABLE {groups} (
    group_id integer NOT NULL,
    shown boolean NOT NULL DEFAULT true,
    version integer NOT NULL DEFAULT 0,
    release bigint NOT NULL DEFAULT {release},
    {columns}
)

-- name: create_release
-- The private copy that is served to readers.
CREATE TABLE {release} AS
{served}

-- name: create_rows
-- The private membership of a release: the group of each source row, and its sensitive values until the history
-- has them.
CREATE TABLE {rows} AS
SELECT {keys}, 0 AS group_id{last}
  FROM {source} AS s
  WITH NO DATA

-- name: create_seal
-- Refuse every statement that changes the copy, even by its owner.
CREATE TRIGGER {trigger}
BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {release}
   FOR EACH STATEMENT
EXECUTE FUNCTION dbanon.refuse_change()

-- name: create_seen
-- Test if a snapshot may read a release; raise an error for an older one, which would see no rows. Parallel
-- workers may call it, because otherwise no reader's query would run in parallel.
CREATE OR REPLACE FUNCTION {seen}()
RETURNS boolean
LANGUAGE plpgsql
STABLE
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS {body}

-- name: create_stage
-- The source columns that are needed after grouping: a transaction that writes does not read the source again.
CREATE TEMPORARY TABLE {stage} ON COMMIT DROP AS
SELECT {columns}
  FROM {source} AS s
  WITH NO DATA

-- name: delete_groups
-- Delete the classes, except those that an open transaction is writing, so that nothing waits.
DELETE FROM {groups} AS g
 USING (SELECT d.group_id FROM {groups} AS d FOR UPDATE SKIP LOCKED) AS f
 WHERE f.group_id = g.group_id

-- name: deletes_rows_alone
-- Test that a private table has no trigger but the seal, no rule and no policy, so that deleting its rows runs no code
-- of its owner.
SELECT NOT (c.relhasrules OR c.relrowsecurity OR c.relforcerowsecurity)
       AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgname <> %(seal)s)
  FROM pg_class AS c
 WHERE c.oid = to_regclass(%(table)s)

-- name: extend_release
-- Withdraw classes from the private copy and add rows, and rewrite all rows of changed classes with them in random
-- order. The physical order then discloses which classes changed, like their rows, and nothing else. Returns by how
-- much the sums of ``copy_sums`` change, the number of former classes of which rows were deleted, the transactions that
-- wrote deleted rows, and this one, with the numbers of rows that the copy loses of each, and the first place of a row.
WITH removed AS (
    DELETE FROM ONLY {release} AS t
     WHERE t.{class_column} IN (SELECT g.class FROM {groups} AS g UNION ALL SELECT unnest({withdrawn}::bigint[]))
    RETURNING {columns}, t.xmin AS {writer}
),
fresh AS MATERIALIZED ({served}),
added AS (
    INSERT INTO {release} ({columns})
    SELECT n.*
      FROM (SELECT {columns} FROM removed AS o WHERE o.{class_column} <> ALL ({withdrawn}::bigint[])
             UNION ALL
            SELECT {columns} FROM fresh AS f) AS n
     ORDER BY {order}
    RETURNING ctid AS place
),
lost AS MATERIALIZED (
    SELECT o.{class_column} AS class, o.{writer} AS writer, count(*) AS rows
      FROM removed AS o
     GROUP BY o.{class_column}, o.{writer}
)
SELECT coalesce(sum(s.sign), 0),
       coalesce(sum(s.sign * hashtextextended('' COLLATE "C", s.cells)::numeric), 0),
       coalesce(sum(s.sign * hashtextextended('' COLLATE "C", s.cells # hashint8extended(s.class, 0))::numeric), 0),
       (SELECT count(DISTINCT l.class) FROM lost AS l),
       (SELECT jsonb_object_agg(w.writer, w.rows)
          FROM (SELECT l.writer::text, sum(l.rows) AS rows FROM lost AS l GROUP BY l.writer
                 UNION ALL
                SELECT pg_current_xact_id()::xid::text,
                       -(SELECT count(*) FROM fresh AS f)
                       - coalesce(sum(l.rows) FILTER (WHERE l.class <> ALL ({withdrawn}::bigint[])), 0)
                  FROM lost AS l) AS w (writer, rows)),
       (SELECT min(a.place) FROM added AS a)::text
  FROM (SELECT -1 AS sign, {cells} AS cells, o.{class_column} AS class
          FROM removed AS o
         WHERE o.{class_column} = ANY ({withdrawn}::bigint[])
         UNION ALL
        SELECT 1, {cells}, f.{class_column}
          FROM fresh AS f
        OFFSET 0) AS s

-- name: fill_stage
-- Read the source in a subtransaction in which foreign code cannot write.
INSERT INTO {stage}
SELECT {columns}
  FROM {source} AS s

-- name: fleeting
-- A table with rows that change without a statement, with the reason.
SELECT c.oid::regclass::text,
       CASE WHEN c.relpersistence <> 'p' THEN 'is not logged: a crash empties it'
            ELSE 'has row-level security: its policies hide rows' END
  FROM pg_class AS c
 WHERE c.oid = ANY (%s::oid[])
   AND (c.relpersistence <> 'p' OR c.relrowsecurity)
 ORDER BY c.oid
 LIMIT 1

-- name: is_written
-- Test if this transaction has written a row, or a savepoint of it, which has a later number: its snapshot, which is
-- older, shows no other row like that. As a CASE, PostgreSQL expects many, and groups them without sorting texts. first:
-- the place of the first one, mostly behind the rows that were there.
s.ctid >= {first}::tid
AND CASE WHEN age(s.xmin) <= (SELECT age(pg_current_xact_id()::xid)) THEN age(s.xmin) > -1000000000 END

-- name: kept_guards
-- Test if the source has exactly the required guards of a live view.
SELECT count(n.name) = count(*)
   AND count(*) = cardinality(%(names)s::text[])
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_namespace AS s ON s.oid = p.pronamespace
  LEFT JOIN unnest(%(names)s::text[], %(functions)s::text[], %(types)s::integer[], %(modes)s::text[])
         AS n (name, function, type, mode)
    ON t.tgrelid = %(source)s
   AND t.tgname = n.name
   AND p.proname = n.function
   AND t.tgtype = n.type
   AND t.tgenabled = left(n.mode, 1)::"char"
   AND cardinality(t.tgattr::int2[]) = 0
   AND (t.tgqual IS NULL OR n.name LIKE '%%fence')
 WHERE s.nspname = 'dbanon_data'
   AND p.proname ~ format('^guard_%%s_', %(data_id)s::bigint)

-- name: key_of_persons
-- The row of the key of a series.
(SELECT k FROM dbanon.history_key AS k WHERE k.key_id = {key})

-- name: left_of_release
-- The remaining objects of a release: its view, its private tables, and the tables with its guards.
SELECT %(view)s::oid
 WHERE %(view)s::oid IS NOT NULL
 UNION
SELECT c.oid
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND c.relname IN (format('release_%%s', %(data_id)s::bigint),
                     format('rows_%%s', %(id)s::bigint),
                     format('groups_%%s', %(id)s::bigint))
 UNION
SELECT t.tgrelid
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname = 'dbanon_data'
   AND p.proname ~ format('^guard_%%s_', %(id)s::bigint)

-- name: make_private
-- Take a new relation from all but its owner, whatever default privileges gave to others.
DO {body}

-- name: make_private_body
-- A table in a logical publication needs an identity to be updated.
DECLARE
    grantee text;
BEGIN
    IF (SELECT c.relkind = 'r' FROM pg_class AS c WHERE c.oid = {quoted}::regclass) THEN
        ALTER TABLE {relation} REPLICA IDENTITY FULL;
    END IF;
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = {quoted}::regclass
           AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', {quoted}, grantee);
    END LOOP;
END

-- name: may_drop
-- Test if the current role may drop a relation.
SELECT pg_has_role(c.relowner, 'USAGE')
  FROM pg_class AS c
 WHERE c.oid = to_regclass(%s)

-- name: move_rows
-- Replace the rows of the previous release. Older snapshots keep seeing the previous rows.
INSERT INTO {former}
SELECT n.*
  FROM {new} AS n

-- name: number_classes
-- The class number and the sensitive values of each row of a private copy that this transaction has written.
CREATE TEMPORARY VIEW {view} AS
SELECT {columns}
  FROM ONLY {release} AS s
 WHERE {is_written}

-- name: number_groups
-- Give every group its class number.
UPDATE {groups} AS g
   SET class = {class}
  FROM dbanon.history_key AS k
 WHERE k.key_id = {key}

-- name: orphans
-- Private relations that no served release needs, including those that were set aside, with their kinds.
SELECT c.relname, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'dbanon_data'
   AND (c.relkind = 'r' OR c.relkind = 'v' AND c.relname ~ '^retired_[0-9]+$')
   AND c.relname <> ALL (%s::text[])
 ORDER BY c.relname LIKE 'places%%', c.relname

-- name: own_changes
-- The rows of a table that this transaction inserted, updated and deleted, as it is counted for statistics. Rows of
-- earlier transactions may be included; all are 0 without track_counts.
SELECT pg_stat_get_xact_tuples_inserted(c.oid), pg_stat_get_xact_tuples_updated(c.oid),
       pg_stat_get_xact_tuples_deleted(c.oid)
  FROM to_regclass(%s) AS c (oid)

-- name: plain_tables
-- Test if all tables have indexes, except one that needs none, and no rules, triggers, checks, policies or children,
-- nor an index that calls functions.
SELECT count(*) = cardinality(%(tables)s::text[])
   AND bool_and((c.relhasindex OR t.name = %(unkeyed)s)
                AND NOT EXISTS (SELECT
                                  FROM pg_index AS x
                                 WHERE x.indrelid = c.oid
                                   AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL))
                AND c.relchecks = 0
                AND NOT c.relhasrules
                AND NOT c.relhastriggers
                AND NOT c.relrowsecurity
                AND NOT c.relhassubclass
                AND NOT c.relispartition)
  FROM unnest(%(tables)s::text[]) AS t (name)
  JOIN pg_class AS c ON c.oid = to_regclass(t.name)
 WHERE c.relkind = 'r'
   AND c.relowner = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user)

-- name: possible_word
-- Test if a source value is a word of the stored list.
{value} IN (
    SELECT {form}
      FROM dbanon.replacement AS w
     CROSS JOIN LATERAL (SELECT one #>> '{{}}' FROM jsonb_path_query(w.words, '$[*]') AS one) AS e (word)
     WHERE w.key_id = {key}
       AND w.kind = {kind})

-- name: private_publications
-- Logical publications that include private tables, with the number of these.
SELECT p.pubname::text, count(*)
  FROM pg_publication_tables AS p
 WHERE p.schemaname IN ('dbanon', 'dbanon_data')
 GROUP BY 1
 ORDER BY 1

-- name: pseudonym
-- The pseudonym of a person in all relations of a series: a keyed hash other than the stored one.
encode(substr({hash}, 1, 16), 'hex')::uuid

-- name: publish_table
-- Serve the private copy: through a view, a reader sees no ctid and no xmin.
CREATE OR REPLACE VIEW {view} ({names})
  WITH (security_barrier = true)
    AS
SELECT {columns}
  FROM ONLY {release} AS s
 WHERE {seen}()

-- name: random_order
-- A number of each row in an order that nobody can predict: a generator for each row would take most of the time.
sha256((SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) || int8send(row_number() OVER ()))

-- name: real_replacements
-- The numbers of published values that are values of the source column as well, and of rows without one.
SELECT count(DISTINCT t.text), (SELECT count(*) FROM ONLY {release} AS r WHERE {own} IS NULL)
  FROM ONLY {release} AS r
  JOIN (SELECT DISTINCT {value} AS text
          FROM {source} AS s
         WHERE {possible}
        OFFSET 0) AS t ON t.text = {replacement}

-- name: real_values
-- The words that are values of a column of the source.
SELECT DISTINCT w.word
  FROM {source} AS s
  JOIN (SELECT e.word, {form} AS form
          FROM unnest({words}::text[]) AS e (word)
        OFFSET 0) AS w ON w.form = {value}

-- name: refill_release
-- Fill the private copy again. Older snapshots keep seeing the previous rows.
INSERT INTO {release}
{served}

-- name: relation_beside
-- The relation of that name; true if it is a companion table that only the owner of the view can change.
SELECT c.oid,
       c.relkind = 'r'
       AND (pg_get_userbyid(c.relowner) = current_user
            OR EXISTS (SELECT
                         FROM pg_class AS v
                        WHERE v.relnamespace = n.oid
                          AND v.relname = %(view)s
                          AND v.relowner = c.relowner))
       AND obj_description(c.oid, 'pg_class') IS NOT DISTINCT FROM %(comment)s
       AND NOT c.relrowsecurity
       AND c.relchecks = 0
       AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
       AND NOT EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid)
       AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent))
       AND NOT EXISTS (SELECT FROM pg_index AS x WHERE x.indrelid = c.oid)
       AND NOT EXISTS (SELECT
                         FROM aclexplode(c.relacl) AS a
                        WHERE a.grantee <> c.relowner
                          AND a.privilege_type <> 'SELECT')
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s
   AND c.relname = %(name)s

-- name: relations_like
-- Relations outside of the private schema with a comment like that.
SELECT n.nspname::text, c.relname::text
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r'
   AND n.nspname <> 'dbanon_data'
   AND obj_description(c.oid, 'pg_class') LIKE %(comment)s
 ORDER BY 1, 2

-- name: release_rows
-- The published rows, in an order independent of the source.
SELECT {columns}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
{made_up}
 ORDER BY {order}

-- name: release_rows_of_draft
-- The published rows; the order of rows, groups and codes is independent of the source. By anatomy, rows are not joined
-- with their sensitive values: the order in which they are joined would tell which rows have the same.
SELECT {columns}
  FROM {rows} AS r
  JOIN {groups} AS g ON g.group_id = r.group_id
{sensitive}
{made_up}

-- name: replacement_code
-- The characters of a pattern, from a hash of the person for this pattern.
(SELECT concat({characters}) FROM (SELECT sha256(p.hash || convert_to({kind}, 'UTF8')) AS hash OFFSET 0) AS c)

-- name: replacement_hash
-- A keyed hash of the person, other than the stored one and the pseudonym; no value shows all of it.
 CROSS JOIN LATERAL (
       SELECT sha256((SELECT k.outer_key FROM dbanon.history_key AS k WHERE k.key_id = {key})
                     || convert_to('replacement' || json_build_array({person})::text, 'UTF8')
                     || (SELECT k.inner_key FROM dbanon.history_key AS k WHERE k.key_id = {key})) AS hash
       OFFSET 0
       ) AS p

-- name: replacement_word
-- A word of the stored list, by 13 bits of the hash. The concatenation is read once, and not decompressed by row.
((SELECT w.words || '[]' FROM dbanon.replacement AS w WHERE w.key_id = {key} AND w.kind = {kind})
    ->> ({offset} + get_byte(p.hash, {first}) * 32 + (get_byte(p.hash, {second}) & 31)))

-- name: replacement_words
-- The kinds of which a key has words.
SELECT w.kind
  FROM dbanon.replacement AS w
 WHERE w.key_id = %(key)s

-- name: rights_changed
-- Test if another transaction changed rights on a relation or a column since this snapshot. Then the snapshot sees
-- an old version in addition to the one that this transaction wrote. written: 1 if each has one, otherwise 0.
SELECT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = %(relation)s HAVING count(*) > %(written)s)
    OR EXISTS (SELECT
                 FROM pg_attribute AS a
                WHERE a.attrelid = %(relation)s
                  AND a.attnum > 0
                GROUP BY a.attnum
               HAVING count(*) > %(written)s)

-- name: same_shape
-- Test if two tables have the same columns, types and order.
SELECT columns[1] = columns[2]
  FROM (SELECT array_agg(a.columns) AS columns
          FROM (SELECT string_agg(format('%%L %%s %%s %%s', a.attname, a.atttypid, a.atttypmod, a.attcollation),
                                  ', ' ORDER BY a.attnum) AS columns
                  FROM pg_attribute AS a
                 WHERE a.attrelid IN (to_regclass(%(one)s), to_regclass(%(other)s))
                   AND a.attnum > 0
                   AND NOT a.attisdropped
                 GROUP BY a.attrelid) AS a) AS t

-- name: same_view
-- Test if two views have the same definition, column names and types.
SELECT count(DISTINCT (pg_get_viewdef(c.oid), c.reloptions, c.relowner,
                       ARRAY(SELECT format('%%L %%s %%s %%s', a.attname, a.atttypid, a.atttypmod, a.attcollation)
                               FROM pg_attribute AS a
                              WHERE a.attrelid = c.oid
                                AND a.attnum > 0
                              ORDER BY a.attnum))) = 1
   AND count(*) = 2
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE (n.nspname, c.relname) IN ((%s, %s), (%s, %s))
   AND c.relkind = 'v'

-- name: seen_body
-- What a release is served from is never empty.
BEGIN
    IF EXISTS (SELECT FROM ONLY {table}) THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION 'could not serialize access: the release was published or withdrawn meanwhile'
        USING ERRCODE = 'serialization_failure',
              HINT = 'Begin a new transaction.';
END

-- name: shape_release
-- The required columns of the private copy, for a comparison with the present ones.
CREATE TABLE {release} AS
{served}
  WITH NO DATA

-- name: show_nothing
-- Keep the columns of a view, without rows.
CREATE OR REPLACE VIEW {view} AS
SELECT {columns}
 WHERE false

-- name: shows_same_values
-- Test if a served copy has the same values in some columns as a new one, each with the same frequency.
WITH new AS (SELECT ARRAY[{values}]::text[] AS shown, count(*) AS n FROM ({served}) AS s GROUP BY 1),
     former AS (SELECT ARRAY[{values}]::text[] AS shown, count(*) AS n FROM {release} AS s GROUP BY 1)
SELECT NOT EXISTS (TABLE new EXCEPT TABLE former)
       AND NOT EXISTS (TABLE former EXCEPT TABLE new)

-- name: store_replacement_words
-- Store the words of a kind, and delete those of forgotten keys.
  WITH forgotten AS (
    DELETE FROM dbanon.replacement AS w
     WHERE NOT EXISTS (SELECT FROM dbanon.history_key AS k WHERE k.key_id = w.key_id)
)
INSERT INTO dbanon.replacement (key_id, kind, words)
VALUES (%(key)s, %(kind)s, %(words)s)

-- name: values_of_pattern
-- The rows of the source, and the different values of a column that have the form of a pattern.
SELECT count(*), count(DISTINCT {value}) FILTER (WHERE {possible} AND {value} ~* {shape})
  FROM {source} AS s

-- name: withdrawn_body
-- The release is nobody's any more.
BEGIN
    RAISE EXCEPTION 'the release was withdrawn'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END

-- name: word_folding
-- The collation that knows the case of all letters, and whether letters with accents have several forms.
SELECT CASE WHEN d.datctype IN ('C', 'POSIX') THEN coalesce(u.name, 'default') ELSE 'default' END,
       getdatabaseencoding() = 'UTF8'
  FROM pg_database AS d
 CROSS JOIN LATERAL (
       SELECT min(c.collname) AS name
         FROM pg_collation AS c
        WHERE c.collnamespace = 'pg_catalog'::regnamespace
          AND c.collname IN ('pg_c_utf8', 'und-x-icu')
          AND getdatabaseencoding() = 'UTF8'
       ) AS u
 WHERE d.datname = current_database()

-- name: word_form
-- The form in which words are compared: without outer spaces and case.
lower(btrim({text}) COLLATE pg_catalog.{folding}) COLLATE "C"
