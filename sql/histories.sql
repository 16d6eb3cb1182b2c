-- The class of each published person, by keyed hash: store, read and delete it.

-- name: add_entries
-- Add the changes of a release to the stored membership.
WITH changed AS (
    UPDATE pg_temp.history_entries AS e
       SET until = %(release)s
     WHERE e.relation = %(relation)s
       AND e.until IS NULL
       AND e.person IN (SELECT c.person FROM pg_temp.history_changes AS c)
)
INSERT INTO pg_temp.history_entries
    (release_id, relation, person, class, value_id, shown, held, place, persons)
SELECT %(release)s, %(relation)s, c.person, c.class, c.value_id, c.class, c.value_id, 1, 1
  FROM pg_temp.history_changes AS c

-- name: add_figures
-- Keep what comparing a release with those before found, so that the next one starts from it.
INSERT INTO dbanon.history_figures (release_id, figures)
VALUES (%(release)s, %(figures)s)

-- name: add_history
-- Record a release with stored membership.
INSERT INTO dbanon.history
    (release_id, table_schema, table_name, relation_schema, relation_name, person, key_id, series,
     several)
VALUES (%(release)s, %(schema)s, %(name)s, %(view_schema)s, %(view_name)s, %(person)s, %(key)s,
        %(series)s, %(several)s)

-- name: add_values
-- Give a number to each combination of sensitive values that is published of the table for the first
-- time. Those that are known are left out beforehand: a conflict would use up a number.
INSERT INTO dbanon.history_value (table_schema, table_name, digest, value)
SELECT {table_schema}, {table_name}, sha256(convert_to(c.value::text, 'UTF8')), c.value
  FROM {codes} AS c
 WHERE NOT EXISTS (SELECT
                     FROM dbanon.history_value AS v
                    WHERE v.table_schema = {table_schema}
                      AND v.table_name = {table_name}
                      AND v.digest = sha256(convert_to(c.value::text, 'UTF8')))
    ON CONFLICT DO NOTHING

-- name: changes
-- How many rows each remembered release of a table changed.
SELECT h.release_id, sum(cardinality(m.persons))::bigint
  FROM dbanon.history AS h
  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 GROUP BY h.release_id

-- name: class_number
-- The number of a class: the keyed hash of its published values.
('x' || encode(substr({hash}, 1, 8), 'hex'))::bit(64)::bigint

-- name: codes
-- The sensitive values of each code, which stands for a combination; used only during a publication.
CREATE TEMPORARY TABLE {codes} (
    code integer NOT NULL,
    value jsonb NOT NULL
)
ON COMMIT DROP

-- name: comparable
-- The releases of a table with the same identifying columns and the same hash key.
SELECT h.release_id, h.relation_schema, h.relation_name, h.several
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
   AND h.person = %(person)s
   AND h.key_id = %(key)s
   AND EXISTS (SELECT FROM dbanon.history_member AS m WHERE m.release_id = h.release_id)
 ORDER BY h.release_id

-- name: create_counted
-- A table for the numbers of persons with each value in each class of the first release of a series.
CREATE TEMPORARY TABLE history_counted (
    class bigint NOT NULL,
    value_id integer NOT NULL,
    persons integer NOT NULL
)
ON COMMIT DROP

-- name: create_entries
-- A table for the membership of persons. persons: how many alike an entry stands for; person is none of theirs if
-- these are several.
CREATE TEMPORARY TABLE history_entries (
    release_id bigint NOT NULL,
    relation bigint NOT NULL,
    person uuid NOT NULL,
    class bigint NOT NULL,
    value_id integer NOT NULL,
    until bigint,
    shown bigint NOT NULL,
    held bigint NOT NULL,
    place bigint NOT NULL,
    persons bigint NOT NULL
)
ON COMMIT DROP

-- name: create_key
-- Make a secret key of 32 bytes, which never leaves the server.
INSERT INTO dbanon.history_key (inner_key, outer_key)
SELECT k.bytes, k.bytes
  FROM (SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                      || uuid_send(gen_random_uuid()))) AS k (bytes)
RETURNING key_id

-- name: create_read
-- The persons that were read, each with the position in the program's arrays; used only during a publication.
CREATE TEMPORARY TABLE {read} (
    place integer NOT NULL,
    {columns}
)
ON COMMIT DROP

-- name: create_rest
-- A table for the numbers of persons with each value in each class that are not in history_entries.
CREATE TEMPORARY TABLE history_rest (
    class bigint NOT NULL,
    value_id integer NOT NULL,
    persons bigint NOT NULL
)
ON COMMIT DROP

-- name: discard_unpublished
-- Discard the rows that a release does not publish.
DELETE FROM pg_temp.history_present AS n
 WHERE n.class IS NULL

-- name: entries
-- The membership of some releases, one row for each row that a person got in a release; class 0: a person that left.
-- relation: its first release among these, which identifies it; until: the next release that changed the rows of the
-- person, NULL for current rows. Numbers are subtracted, as two tables that are merged by releases alone would have each
-- row of a release compared with each change. Functions of the select list unpack arrays without storing their rows.
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, c.until
  FROM (SELECT h.release_id, h.relation, unnest(m.persons) AS person, unnest(m.classes) AS class,
               unnest(m.value_ids) AS value_id
          FROM unnest({releases}::bigint[], {first}::bigint[]) AS h (release_id, relation)
          JOIN dbanon.history_member AS m ON m.release_id = h.release_id) AS e
  LEFT JOIN (
        SELECT d.person, d.relation, d.release_id AS until,
               lag(d.release_id, 1, d.relation)
                   OVER (PARTITION BY d.person, d.relation ORDER BY d.release_id) AS since
          FROM (SELECT DISTINCT p.person, h.relation, h.release_id
                  FROM unnest({releases}::bigint[], {first}::bigint[]) AS h (release_id, relation)
                  JOIN dbanon.history_member AS m ON m.release_id = h.release_id
                 CROSS JOIN LATERAL unnest(m.persons) AS p (person)
                 WHERE h.release_id <> h.relation) AS d) AS c
         ON c.person = e.person
        AND c.relation - e.relation = 0
        AND c.since - e.release_id = 0

-- name: figures
-- What comparing some releases found.
SELECT f.release_id, f.figures
  FROM dbanon.history_figures AS f
 WHERE f.release_id = ANY (%(releases)s)

-- name: fill_rest
-- Count the persons of a relation's first release that are not in history_entries.
INSERT INTO pg_temp.history_rest
SELECT c.class, c.value_id, c.persons - coalesce(t.persons, 0)
  FROM dbanon.history_class AS h
 CROSS JOIN LATERAL unnest(h.classes, h.value_ids, h.persons) AS c (class, value_id, persons)
  LEFT JOIN (SELECT e.class, e.value_id, count(*) AS persons
               FROM pg_temp.history_entries AS e
              WHERE e.release_id = %(first)s
              GROUP BY e.class, e.value_id) AS t ON t.class = c.class AND t.value_id = c.value_id
 WHERE h.release_id = %(first)s
   AND c.persons <> coalesce(t.persons, 0)

-- name: find_changed_rows
-- Find the persons with other rows than in the relation's previous release, of which one may have several. A person
-- that left has class 0.
CREATE TEMPORARY TABLE history_changes ON COMMIT DROP AS
WITH changed AS (
    SELECT r.person
      FROM (SELECT n.person, n.class, n.value_id, 1 AS rows
              FROM pg_temp.history_present AS n
             UNION ALL
            SELECT b.person, b.class, b.value_id, -1
              FROM pg_temp.history_former AS b) AS r
     GROUP BY r.person, r.class, r.value_id
    HAVING sum(r.rows) <> 0
)
SELECT n.person, n.class, n.value_id
  FROM pg_temp.history_present AS n
 WHERE n.person IN (SELECT c.person FROM changed AS c)
 UNION ALL
SELECT DISTINCT c.person, 0, 0
  FROM changed AS c
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_present AS n WHERE n.person = c.person)

-- name: find_changes
-- The same for persons with one row each, from what each of the relation's releases changed.
CREATE TEMPORARY TABLE history_changes ON COMMIT DROP AS
WITH later AS MATERIALIZED (
    SELECT DISTINCT ON (e.person) e.person, e.class, e.value_id
      FROM dbanon.history_member AS m
     CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
     WHERE m.release_id = ANY ({later})
     ORDER BY e.person, m.release_id DESC
)
SELECT person, coalesce(n.class, 0) AS class, coalesce(n.value_id, 0) AS value_id
  FROM pg_temp.history_present AS n
  FULL JOIN (
        SELECT e.person, e.class, e.value_id
          FROM (SELECT unnest(m.persons) AS person, unnest(m.classes) AS class, unnest(m.value_ids) AS value_id
                  FROM dbanon.history_member AS m
                 WHERE m.release_id = {first}) AS e
         WHERE NOT EXISTS (SELECT FROM later AS l WHERE l.person = e.person)
         UNION ALL
        SELECT l.person, l.class, l.value_id
          FROM later AS l
         WHERE l.class <> 0) AS b USING (person)
 WHERE n.class IS DISTINCT FROM b.class
    OR n.value_id IS DISTINCT FROM b.value_id

-- name: find_former
-- The same for a release that starts a series, beside the releases of another one: everybody has changed.
CREATE TEMPORARY TABLE history_changes ON COMMIT DROP AS
SELECT encode(n.former, 'hex')::uuid AS person, n.class, n.value_id
  FROM pg_temp.history_present AS n
 UNION ALL
SELECT DISTINCT e.person, 0, 0
  FROM pg_temp.history_entries AS e
 WHERE e.relation = %(relation)s
   AND e.until IS NULL
   AND e.class <> 0
   AND NOT EXISTS (SELECT FROM pg_temp.history_present AS n WHERE n.former = uuid_send(e.person))

-- name: forget_figures
-- Forget what comparing releases found that no comparison starts from: of releases before all that are
-- served, and of those before the last hundred.
WITH known AS (
    SELECT h.release_id, row_number() OVER (ORDER BY h.release_id DESC) AS place,
           EXISTS (SELECT
                     FROM dbanon.release AS r
                    WHERE r.release_id = h.release_id
                      AND r.served) AS is_served
      FROM dbanon.history AS h
     WHERE h.release_id = ANY (%(releases)s)
)
DELETE FROM dbanon.history_figures AS f
 USING known AS k
 WHERE k.release_id = f.release_id
   AND (k.place > 100
        OR k.release_id < (SELECT min(s.release_id) FROM known AS s WHERE s.is_served))

-- name: forget_series
-- Delete the membership of a series: persons, classes and values, and the hash key unless another series uses it.
WITH forgotten AS (
    UPDATE dbanon.history AS h
       SET forgotten_at = now()
     WHERE h.table_schema = %(schema)s
       AND h.table_name = %(name)s
       AND h.series = %(series)s
       AND h.forgotten_at IS NULL
    RETURNING h.release_id, h.key_id
),
figures AS (
    DELETE FROM dbanon.history_figures AS f
     WHERE f.release_id IN (SELECT g.release_id FROM forgotten AS g)
),
classes AS (
    DELETE FROM dbanon.history_class AS c
     WHERE c.release_id IN (SELECT g.release_id FROM forgotten AS g)
),
members AS (
    DELETE FROM dbanon.history_member AS m
     WHERE m.release_id IN (SELECT g.release_id FROM forgotten AS g)
),
keys AS (
    DELETE FROM dbanon.history_key AS k
     WHERE k.key_id IN (SELECT g.key_id FROM forgotten AS g)
       AND NOT EXISTS (SELECT
                         FROM dbanon.history AS h
                        WHERE h.key_id = k.key_id
                          AND h.forgotten_at IS NULL
                          AND h.release_id NOT IN (SELECT g.release_id FROM forgotten AS g))
),
combinations AS (
    DELETE FROM dbanon.history_value AS v
     WHERE v.table_schema = %(schema)s
       AND v.table_name = %(name)s
       AND NOT EXISTS (SELECT
                         FROM dbanon.history AS h
                         JOIN dbanon.history_member AS m ON m.release_id = h.release_id
                        CROSS JOIN LATERAL unnest(m.value_ids) AS u (value_id)
                        WHERE h.table_schema = %(schema)s
                          AND h.table_name = %(name)s
                          AND h.release_id NOT IN (SELECT g.release_id FROM forgotten AS g)
                          AND u.value_id = v.value_id)
)
SELECT g.release_id
  FROM forgotten AS g
 ORDER BY g.release_id

-- name: former_key
-- The key of the series with which a new one is compared.
LEFT JOIN dbanon.history_key AS f ON f.key_id = {key}

-- name: keep_classes
-- Store how many persons of the first release of a series have each value in each class.
INSERT INTO dbanon.history_class (release_id, classes, value_ids, persons)
SELECT %(release)s, array_agg(o.class), array_agg(o.value_id), array_agg(o.persons)
  FROM (SELECT c.class, c.value_id, c.persons
          FROM pg_temp.history_counted AS c
         ORDER BY c.class, c.value_id) AS o

-- name: known_by_key
-- The other releases with a hash key: table, identifying columns, true if pseudonyms or made-up values are published,
-- and true if they precede this publication, which the ledger does not contain yet.
SELECT h.table_schema, h.table_name, h.person, r.policy ->> 'pseudonym' IS NOT NULL OR r.policy @? '$.columns[*].replace',
       h.release_id <= (SELECT coalesce(max(l.release_id), 0) FROM dbanon.release AS l)
  FROM dbanon.history AS h
  LEFT JOIN dbanon.release AS r ON r.release_id = h.release_id
 WHERE h.key_id = %(key)s
   AND h.release_id <> %(release)s

-- name: later_changes
-- Test if the releases after the first one changed at most a share of its rows, and if the counts of its classes add
-- up to it, NULL without counts.
SELECT coalesce(sum(cardinality(m.persons)) FILTER (WHERE m.release_id <> %(first)s), 0)
           <= %(share)s * sum(cardinality(m.persons)) FILTER (WHERE m.release_id = %(first)s),
       (SELECT sum(n.persons)
          FROM dbanon.history_class AS c
         CROSS JOIN LATERAL unnest(c.persons) AS n (persons)
         WHERE c.release_id = %(first)s) = sum(cardinality(m.persons)) FILTER (WHERE m.release_id = %(first)s)
  FROM dbanon.history_member AS m
 WHERE m.release_id = ANY (%(releases)s)

-- name: latest_history
-- The latest membership of a relation, otherwise of its table: identifying columns, key, true if the key still
-- exists, series, and true if the membership was deleted.
SELECT h.person, h.key_id, EXISTS (SELECT FROM dbanon.history_key AS k WHERE k.key_id = h.key_id),
       h.series, h.forgotten_at IS NOT NULL
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 ORDER BY (h.relation_schema = %(view_schema)s::text AND h.relation_name = %(view_name)s::text) IS TRUE DESC,
       h.release_id DESC
 LIMIT 1

-- name: may_forget
-- Test if the current role may delete membership.
SELECT bool_and(has_table_privilege(c.oid, 'DELETE'))
  FROM pg_class AS c
 WHERE c.relnamespace = 'dbanon'::regnamespace
   AND c.relname IN ('history_class', 'history_figures', 'history_key', 'history_member', 'history_value')

-- name: members_of
-- The rows that a release changed.
SELECT unnest(m.persons) AS person, unnest(m.classes) AS class, unnest(m.value_ids) AS value_id
  FROM dbanon.history_member AS m
 WHERE m.release_id = {release}

-- name: members_of_rows
-- The persons of a release, hashed before any join.
(SELECT {person} AS person, {former} AS former, {place} AS place, r.group_id, r.value
   FROM dbanon.history_key AS k {former_of}
  CROSS JOIN {members}
  WHERE k.key_id = {key}
 OFFSET 0)

-- name: merge_alike
-- The membership of one person of all who were always published together in the same classes with the same values,
-- which is a fraction of it: no figure of cells or pairs tells them apart. Of persons with one row a release only.
CREATE TEMPORARY TABLE history_rewritten ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place, a.persons
  FROM (SELECT (array_agg(c.person))[1] AS person, sum(c.persons::double precision)::bigint AS persons
          FROM (SELECT h.person, min(h.persons) AS persons,
                       string_agg(int8send(h.release_id) || int8send(h.class) || int4send(h.value_id), ''
                                  ORDER BY h.release_id) AS course
                  FROM pg_temp.history_entries AS h
                 GROUP BY h.person) AS c
         GROUP BY c.course) AS a
  JOIN pg_temp.history_entries AS e ON e.person = a.person

-- name: narrow
-- The previous rows of persons that may have changed: those that are withdrawn or have new rows.
CREATE TEMPORARY TABLE history_former ON COMMIT DROP AS
SELECT g.person, g.class, g.value_id
  FROM pg_temp.history_departed AS g
 UNION ALL
SELECT b.person, b.class, b.value_id
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT n.person FROM pg_temp.history_present AS n)
   AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS g WHERE g.person = b.person)

-- name: number_sets
-- Number each set of classes and each multiset of values that a person with several rows has in a release. The number
-- of rows per class is not part of it: no reader knows the person of a row.
CREATE TEMPORARY TABLE history_rewritten ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until,
       CASE WHEN e.class = 0 THEN 0 ELSE dense_rank() OVER (ORDER BY s.classes) END AS shown,
       CASE WHEN e.class = 0 THEN 0 ELSE dense_rank() OVER (ORDER BY s.value_ids) END AS held,
       row_number() OVER (PARTITION BY e.release_id, e.person ORDER BY e.class, e.value_id) AS place, e.persons
  FROM pg_temp.history_entries AS e
  JOIN (SELECT r.release_id, r.person,
               array_agg(DISTINCT r.class ORDER BY r.class) AS classes,
               array_agg(r.value_id ORDER BY r.class, r.value_id) AS value_ids
          FROM pg_temp.history_entries AS r
         GROUP BY r.release_id, r.person) AS s
    ON s.release_id = e.release_id
   AND s.person = e.person

-- name: pack
-- Store the changes of a release in an order that is independent of the source, and by which persons are searched for.
INSERT INTO dbanon.history_member (release_id, part, persons, classes, value_ids)
SELECT %(release)s, (o.place - 1) / 10000 AS part,
       array_agg(o.person ORDER BY o.place), array_agg(o.class ORDER BY o.place),
       array_agg(o.value_id ORDER BY o.place)
  FROM (SELECT row_number() OVER (ORDER BY c.person, c.class, c.value_id) AS place,
               c.person, c.class, c.value_id
          FROM pg_temp.history_changes AS c) AS o
 GROUP BY part
 UNION ALL
SELECT %(release)s, 0, '{}', '{}', '{}'  -- a release that changed nothing is remembered, too
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_changes)

-- name: persons_apart
-- The numbers of persons that only this release shows, and that only an earlier one shows, for each of some earlier
-- releases.
WITH new AS MATERIALIZED (SELECT DISTINCT r.person FROM ({new}) AS r)
SELECT r.shown_id, c.*
  FROM {releases}
 CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE f.person IS NULL), count(*) FILTER (WHERE n.person IS NULL)
          FROM new AS n
          FULL JOIN (SELECT DISTINCT s.person FROM ({former}) AS s) AS f ON f.person = n.person) AS c
 ORDER BY r.shown_id

-- name: present
-- Write the persons of a release by keyed hash, with class and values, to a table. Rows of the source that are not
-- published have no class until they are discarded. former: the hash by the key of the releases that a new series is
-- compared with, its first half as of "person_hash", in bytes, as the cast takes half the time of the hash; row_place:
-- the place of the row, if places are stored. Used only during a publication. To insert them into a table that was made
-- before takes half as long again.
CREATE TEMPORARY TABLE history_present ON COMMIT DROP AS
WITH class AS MATERIALIZED (
    SELECT g.group_id, {class} AS class
      FROM {groups} AS g
      JOIN dbanon.history_key AS k ON k.key_id = {key}
),
valued AS MATERIALIZED (
    SELECT o.code, v.value_id
      FROM {codes} AS o
      LEFT JOIN dbanon.history_value AS v
        ON v.table_schema = {table_schema}
       AND v.table_name = {table_name}
       AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
)
SELECT h.person, substr(h.former, 1, 16) AS former, c.class, v.value_id, h.place AS row_place
  FROM {members} AS h
  LEFT JOIN class AS c ON c.group_id = h.group_id
  LEFT JOIN valued AS v ON v.code = h.value

-- name: present_count
-- The numbers of rows, of those with a person, a class and a value, and of those to publish, and a sum that depends on
-- the keys of the latter.
SELECT n.*, r.*
  FROM (SELECT count(*), least(count(p.person), count(p.class), count(p.value_id))
          FROM pg_temp.history_present AS p) AS n,
       (SELECT count(*), coalesce(sum({hash}), 0) FROM {rows} AS r) AS r

-- name: present_in_source
-- The number of persons of an earlier release that are in the source.
SELECT count(DISTINCT f.person)
  FROM pg_temp.history_shown AS f
 WHERE f.person IN (SELECT {person}
                      FROM {source} AS s
                     CROSS JOIN dbanon.history_key AS k
                     WHERE k.key_id = {key})

-- name: retain
-- Add the retained rows of persons with new rows.
INSERT INTO pg_temp.history_present (person, class, value_id)
SELECT f.person, f.class, f.value_id
  FROM pg_temp.history_former AS f
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS g WHERE g.person = f.person)

-- name: rows
-- Write the rows of a release to a table.
CREATE TEMPORARY TABLE {rows} ON COMMIT DROP AS
{shown}

-- name: same_members
-- Test if a copy has as many rows as the stored membership, in total and in each touched class, and if the class
-- number of each row of these classes belongs to its published values. rows: those of the copy; touched: the classes
-- that lost or gained rows, of which this transaction has written every row.
WITH touched AS MATERIALIZED ({touched}),
shown AS MATERIALIZED (  -- a published column may have any other name
    SELECT {quasi}, ARRAY[s.{class_column}, count(*)] AS {class_column}
      FROM ONLY {release} AS s
     WHERE {is_written}
     GROUP BY {alike}, s.{class_column}
),
counted AS (
    SELECT s.{class_column}[1] AS class, sum(s.{class_column}[2]) AS rows
      FROM shown AS s
     GROUP BY s.{class_column}[1]
),
remembered AS (
    SELECT p.class, sum(p.rows) AS rows
      FROM (SELECT n.class, 1 AS rows FROM pg_temp.history_present AS n
             UNION ALL
            SELECT b.class, 1 FROM pg_temp.history_before AS b
             UNION ALL
            SELECT r.class, r.persons FROM pg_temp.history_rest AS r
             UNION ALL
            SELECT g.class, -1 FROM pg_temp.history_departed AS g) AS p
     WHERE p.class IN (SELECT t.class FROM touched AS t)
     GROUP BY p.class
    HAVING sum(p.rows) <> 0
)
SELECT {rows}
       = (SELECT count(*) FROM pg_temp.history_present) + (SELECT count(*) FROM pg_temp.history_before)
           + (SELECT coalesce(sum(r.persons), 0) FROM pg_temp.history_rest AS r)
           - (SELECT count(*) FROM pg_temp.history_departed)
   AND NOT EXISTS (SELECT
                     FROM counted AS c
                     FULL JOIN remembered AS m USING (class)
                    WHERE c.rows IS DISTINCT FROM m.rows)
   AND NOT EXISTS (SELECT
                     FROM shown AS s
                     LEFT JOIN dbanon.history_key AS k ON k.key_id = {key}
                    WHERE {class} IS DISTINCT FROM s.{class_column}[1])

-- name: series
-- The series of each remembered release of a table: the release that started it, 0 for the first one;
-- and its relation.
SELECT h.release_id, h.series, h.relation_schema, h.relation_name
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 ORDER BY h.release_id

-- name: shown
-- The rows of a release, each with person, class and value.
SELECT e.person, e.class, e.value_id, e.shown, e.place, e.persons
  FROM {entries} AS e
 WHERE e.relation = {relation}
   AND e.release_id <= {release}
   AND (e.until > {release} OR e.until IS NULL)
   AND e.class <> 0

-- name: shows_several
-- Test if some release changed several rows of a person at once.
SELECT count(*) > count(DISTINCT (m.release_id, e.person))
  FROM dbanon.history_member AS m
 CROSS JOIN LATERAL unnest(m.persons) AS e (person)
 WHERE m.release_id = ANY (%(releases)s)

-- name: source
-- The rows that were read: keyed hash of the person, position and values. A value that was never published has no
-- number. Nothing is looked up row by row, as the planner does not know the number of rows.
CREATE TEMPORARY TABLE history_source ON COMMIT DROP AS
WITH valued AS MATERIALIZED (
    SELECT o.code, v.value_id
      FROM {codes} AS o
      LEFT JOIN dbanon.history_value AS v
        ON v.table_schema = {table_schema}
       AND v.table_name = {table_name}
       AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
)
SELECT {person} AS person, l.place, v.value_id
  FROM {read} AS l
  JOIN dbanon.history_key AS k ON k.key_id = {key}
  JOIN valued AS v ON v.code = l.code

-- name: touched
-- The persons with changed, unpublished or deleted rows.
SELECT c.person FROM pg_temp.history_came AS c
 UNION
SELECT w.person FROM pg_temp.history_went AS w
 UNION
SELECT m.person FROM pg_temp.history_marked AS m WHERE m.state < 0
 UNION
SELECT u.person
  FROM dbanon.history_leaver AS g
 CROSS JOIN LATERAL unnest(g.persons) AS u (person)
 WHERE g.relation_schema = {view_schema}
   AND g.relation_name = {view_name}

-- name: unpack
-- Write the membership of some releases to a table. shown, held: identify the classes and the values of all rows of
-- the person; place: number of the row within the person.
CREATE TEMPORARY TABLE history_entries ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until,
       e.class AS shown, e.value_id::bigint AS held, 1::bigint AS place, 1::bigint AS persons
  FROM ({entries}) AS e

-- name: unpack_alike
-- Write the membership of a series to a table, with a release that starts another one, as if that continued it: one
-- entry for all persons who were always published together in the same classes with the same values, and are now. It
-- is a fraction, and no figure of cells or pairs tells them apart. Of persons with one row a release only. oldest: the
-- first release, of which few persons changed later. Those with the same changes have one course, and one step of it
-- for each change. Who is no longer shown has class 0. An entry has a number of twelve digits in place of a person, which
-- needs no padding. The persons of that release are counted by class and value, too.
WITH class AS MATERIALIZED (
    SELECT DISTINCT ON (g.class) g.class, {class} AS former  -- groups may be published alike
      FROM {groups} AS g
      JOIN dbanon.history_key AS k ON k.key_id = {key}
),
later AS MATERIALIZED (
    SELECT h.release_id, h.relation, unnest(m.persons) AS person, unnest(m.classes) AS class,
           unnest(m.value_ids) AS value_id
      FROM unnest({releases}::bigint[], {first}::bigint[]) AS h (release_id, relation)
      JOIN dbanon.history_member AS m ON m.release_id = h.release_id
     WHERE h.release_id <> {oldest}
),
course AS MATERIALIZED (
    SELECT c.person, dense_rank() OVER (ORDER BY c.changes) AS course
      FROM (SELECT l.person, string_agg(int8send(l.release_id) || int8send(l.class) || int4send(l.value_id), ''
                                        ORDER BY l.release_id) AS changes
              FROM later AS l
             GROUP BY l.person) AS c
),
step AS MATERIALIZED (
    SELECT c.course, l.release_id, l.relation, l.class, l.value_id,
           lead(l.release_id) OVER (PARTITION BY c.course, l.relation ORDER BY l.release_id) AS until
      FROM (SELECT DISTINCT ON (c.course) c.course, c.person
              FROM course AS c
             ORDER BY c.course) AS c
      JOIN later AS l ON l.person = c.person
),
turn AS MATERIALIZED (  -- until when the first release is as it was, and what the relation's previous one shows
    SELECT s.course, min(s.release_id) FILTER (WHERE s.relation = {oldest}) AS until,
           bool_or(s.relation = {relation}) AS is_known,
           max(nullif(s.class, 0)) FILTER (WHERE s.relation = {relation} AND s.until IS NULL) AS class,
           max(nullif(s.value_id, 0)) FILTER (WHERE s.relation = {relation} AND s.until IS NULL) AS value_id
      FROM step AS s
     GROUP BY s.course
),
met AS (
    SELECT o.class, o.value_id, c.course, n.class AS class_now, n.value_id AS value_now, count(*) AS persons
      FROM (SELECT unnest(m.persons) AS person, unnest(m.classes) AS class, unnest(m.value_ids) AS value_id
              FROM dbanon.history_member AS m
             WHERE m.release_id = {oldest}) AS o
      FULL JOIN course AS c ON c.person = o.person
      FULL JOIN pg_temp.history_present AS n ON n.former = uuid_send(coalesce(o.person, c.person))
     GROUP BY o.class, o.value_id, c.course, n.class, n.value_id
),
counted AS (
    INSERT INTO pg_temp.history_counted
    SELECT m.class_now, m.value_now, sum(m.persons::double precision)
      FROM met AS m
     WHERE m.class_now IS NOT NULL
     GROUP BY m.class_now, m.value_now
),
alike AS MATERIALIZED (
    SELECT (repeat('0', 20) || to_hex(x'100000000000'::bigint + row_number() OVER ()))::uuid AS person,
           m.persons, m.class, m.value_id, m.course, t.until, c.former AS class_now, m.value_now,
           CASE WHEN t.is_known THEN (c.former, m.value_now) IS NOT DISTINCT FROM (t.class, t.value_id)
                WHEN {oldest} = {relation} THEN (c.former, m.value_now) IS NOT DISTINCT FROM (m.class, m.value_id)
                ELSE c.former IS NULL
           END AS is_same
      FROM met AS m
      LEFT JOIN class AS c ON c.class = m.class_now
      LEFT JOIN turn AS t ON t.course = m.course
),
entry AS (
    SELECT {oldest}::bigint AS release_id, {oldest}::bigint AS relation, a.person, a.class, a.value_id, a.until,
           a.is_same, a.persons
      FROM alike AS a
     WHERE a.class IS NOT NULL
     UNION ALL
    SELECT s.release_id, s.relation, a.person, s.class, s.value_id, s.until, a.is_same, a.persons
      FROM alike AS a
      JOIN step AS s ON s.course = a.course
     UNION ALL
    SELECT {release}, {relation}, a.person, coalesce(a.class_now, 0), coalesce(a.value_now, 0), NULL, true, a.persons
      FROM alike AS a
     WHERE NOT a.is_same
)
INSERT INTO pg_temp.history_entries
SELECT e.release_id, e.relation, e.person, e.class, e.value_id,
       coalesce(e.until, CASE WHEN e.relation = {relation} AND NOT e.is_same THEN {release}::bigint END) AS until,
       e.class AS shown, e.value_id::bigint AS held, 1::bigint AS place, e.persons
  FROM entry AS e

-- name: unpack_touched
-- Write the membership of the persons that a release may concern: those that changed since the first release, and
-- some others. The persons of each part are sorted, and those of all parts: a person is found by two searches
-- instead of unpacking all. Arrays of a stored row would be read for each search. Searched persons are joined by part,
-- as PostgreSQL expects a single part, and would compare each person with each part.
WITH later AS MATERIALIZED (
    SELECT m.release_id, e.person, e.class, e.value_id
      FROM dbanon.history_member AS m
     CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS e (person, class, value_id)
     WHERE m.release_id = ANY ({later})
),
touched AS MATERIALIZED (
    SELECT l.person FROM later AS l
     UNION
    {touched}
),
part AS MATERIALIZED (
    SELECT m.part, m.persons || ARRAY[]::uuid[] AS persons, m.classes || ARRAY[]::bigint[] AS classes,
           m.value_ids || ARRAY[]::integer[] AS value_ids
      FROM dbanon.history_member AS m
     WHERE m.release_id = {first}
),
begun AS MATERIALIZED (
    SELECT array_agg(p.part ORDER BY p.part) AS parts, array_agg(p.persons[1] ORDER BY p.part) AS persons
      FROM part AS p
     WHERE cardinality(p.persons) > 0
)
INSERT INTO pg_temp.history_entries
SELECT e.release_id, {first}, e.person, e.class, e.value_id,
       lead(e.release_id) OVER (PARTITION BY e.person ORDER BY e.release_id),
       e.class, e.value_id, 1, 1
  FROM (SELECT {first} AS release_id, t.person, p.classes[f.place] AS class, p.value_ids[f.place] AS value_id
          FROM (SELECT b.parts[width_bucket(t.person, b.persons)] AS part, array_agg(t.person) AS persons
                  FROM touched AS t
                 CROSS JOIN begun AS b
                 GROUP BY 1) AS g
          JOIN part AS p ON p.part = g.part
         CROSS JOIN unnest(g.persons) AS t (person)
         CROSS JOIN LATERAL (SELECT width_bucket(t.person, p.persons) AS place OFFSET 0) AS f
         WHERE p.persons[f.place] = t.person
         UNION ALL
        SELECT l.release_id, l.person, l.class, l.value_id
          FROM later AS l) AS e

-- name: widen
-- Add the other members of some classes, those with the same value as one entry.
WITH rest AS (
    DELETE FROM pg_temp.history_rest AS r
     WHERE r.class IN ({classes})
    RETURNING r.class, r.value_id, r.persons
)
INSERT INTO pg_temp.history_entries
    (release_id, relation, person, class, value_id, shown, held, place, persons)
SELECT {first}, {first}, (lpad(to_hex(r.class), 16, '0') || lpad(to_hex(r.value_id), 16, '0'))::uuid,
       r.class, r.value_id, r.class, r.value_id, 1, r.persons
  FROM rest AS r

-- name: widen_departed
-- Add the withdrawn persons, each by itself.
WITH rest AS (
    DELETE FROM pg_temp.history_rest AS r
     WHERE r.class IN (SELECT d.class FROM pg_temp.history_departed AS d)
)
INSERT INTO pg_temp.history_entries
    (release_id, relation, person, class, value_id, shown, held, place, persons)
SELECT {first}, {first}, d.person, d.class, d.value_id, d.class, d.value_id, 1, 1
  FROM pg_temp.history_departed AS d
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_entries AS e WHERE e.person = d.person)
