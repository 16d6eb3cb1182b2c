-- Hashes of persons, the places of their rows, and samples of rows.

-- name: count_parts
-- The same; the pages of a part of the table, with the rows of each part; and of parts that gained or lost a row since
-- their former rows were stored, the first pages, and how many rows these were.
SELECT sum(c.rows)::int8, sum(c.unchanged)::int8{sums}, sum(c.keys)::numeric,
       ({pages} || array_agg(c.rows ORDER BY p.part))::text,
       array_agg(p.part * {pages}) FILTER (WHERE c.rows <> c.unchanged OR c.rows <> coalesce(f.rows, 0)),
       coalesce(sum(f.rows) FILTER (WHERE c.rows <> c.unchanged OR c.rows <> f.rows), 0)::int8
  FROM generate_series(0, greatest({size} / {pages}, cardinality({former}::int8[]))) AS p (part)
  LEFT JOIN unnest({former}::int8[]) WITH ORDINALITY AS f (rows, number) ON f.number = p.part + 2
 CROSS JOIN LATERAL ({counted}
   AND s.ctid >= ('(' || p.part * {pages} || ',0)')::tid
   AND s.ctid < ('(' || (p.part + 1) * {pages} || ',0)')::tid) AS c

-- name: count_places
-- The numbers of new rows, of deleted rows, and of unchanged rows that are not published.
SELECT (SELECT count(*) FROM pg_temp.history_came),
       (SELECT count(*) FROM pg_temp.history_went),
       count(*) FILTER (WHERE m.state < 0)
  FROM pg_temp.history_marked AS m

-- name: count_unchanged
-- The numbers of rows, of those that no transaction wrote since a snapshot, and of values by column; and a sum that
-- depends on all keys.
SELECT count(*) AS rows, count(*) FILTER (WHERE {unchanged}) AS unchanged{counts}, coalesce(sum({hash}), 0) AS keys
  FROM {source} AS s
 WHERE {selected}

-- name: count_values
-- The distinct values of a column, and how many of the rows that are published have each.
SELECT count(*)::int8, v.value
  FROM (SELECT {value} AS value FROM {source} WHERE {selected}) AS v
 GROUP BY v.value

-- name: create_found
-- A table for rows: those that changed since a snapshot, those that are to be read, or all.
CREATE TEMPORARY TABLE {found} (place tid NOT NULL, person uuid) ON COMMIT DROP

-- name: create_places
-- The place of each row that was read, and its person. state: -1 of a row that is not published, 0 of one that is as
-- published, otherwise 1 plus 2 to the power of the number of each sensitive column with another value by now.
CREATE TABLE {places} (person uuid NOT NULL, state bigint NOT NULL, place tid NOT NULL)

-- name: discard_went
-- Discard the places of rows that went.
DELETE FROM {places} AS p
 USING pg_temp.history_went AS w
 WHERE w.place = p.ctid

-- name: empty_places
-- Empty a table of places, which no reader reads; while a dump of the database has a lock on it, delete its rows.
DO $$
BEGIN
    LOCK TABLE {places} IN ACCESS EXCLUSIVE MODE NOWAIT;
    TRUNCATE {places};
EXCEPTION WHEN lock_not_available THEN
    DELETE FROM {places};
END
$$

-- name: fill_hashed
-- The places of all rows of a source, with the keyed hash of the person.
INSERT INTO {hashed}
SELECT s.ctid, {person}
  FROM (SELECT * FROM {source} AS s WHERE {selected}) AS s
 CROSS JOIN dbanon.history_key AS k
 WHERE k.key_id = {key}

-- name: fill_places
-- The places of all rows, those that a release does not publish included.
INSERT INTO {places}
SELECT n.person, CASE WHEN n.class IS NULL THEN -1 ELSE 0 END, n.row_place
  FROM pg_temp.history_present AS n

-- name: fill_unpublished
-- Write the rows of a source that are not among those of a release: persons with places and without class. Their number,
-- and the sum of count_unchanged.
WITH others AS MATERIALIZED (
    SELECT {person} AS person, s.ctid AS place, {hash} AS hash
      FROM (SELECT * FROM {source} AS s WHERE {selected}) AS s
     CROSS JOIN dbanon.history_key AS k
     WHERE k.key_id = {key}
       AND NOT EXISTS (SELECT FROM {rows} AS r WHERE r.place = s.ctid)
),
written AS (
    INSERT INTO pg_temp.history_present (person, row_place)
    SELECT o.person, o.place FROM others AS o
)
SELECT count(*), coalesce(sum(o.hash), 0) FROM others AS o

-- name: find_changes
-- The rows that came since a snapshot, with the keyed hash of the person; and the entries of places in which no
-- unchanged row lies. Returns how many places are in the parts of the table that changed.
WITH came AS (
    INSERT INTO pg_temp.history_came
    SELECT s.ctid, {person}
      FROM (SELECT * FROM {rows} AS s WHERE {selected} AND NOT {unchanged}) AS s
     CROSS JOIN dbanon.history_key AS k
     WHERE k.key_id = {key}
),
compared AS MATERIALIZED (
    SELECT count(*) AS places,
           array_agg(p.ctid) FILTER (WHERE s.ctid IS NULL) AS entries,
           array_agg(p.person) FILTER (WHERE s.ctid IS NULL) AS persons
      FROM {places} AS p
      LEFT JOIN (SELECT s.ctid FROM {rows} AS s WHERE {unchanged} AND {selected}) AS s ON s.ctid = p.place
     WHERE {in_parts}
),
went AS (
    INSERT INTO pg_temp.history_went
    SELECT w.place, w.person
      FROM compared AS c
     CROSS JOIN unnest(c.entries, c.persons) AS w (place, person)
)
SELECT c.places FROM compared AS c

-- name: find_marked
-- The unchanged rows that are not published, or not as they are by now, with the state of their place.
CREATE TEMPORARY TABLE history_marked ON COMMIT DROP AS
SELECT p.person, p.place, p.state
  FROM {places} AS p
 WHERE p.state <> 0
   AND NOT EXISTS (SELECT FROM pg_temp.history_went AS w WHERE w.place = p.ctid)

-- name: find_spread
-- The first and the last row with each distinct value of some columns, among some rows; and the number of values, and
-- of those of an unchanged row.
WITH value AS MATERIALIZED (
    SELECT min(v.place) AS first, max(v.place) AS last, bool_or(v.is_unchanged) AS is_unchanged
      FROM (SELECT {values}s.ctid AS place, {unchanged} AS is_unchanged
              FROM {source} AS s
             WHERE {among}
               AND {selected}) AS v
     GROUP BY GROUPING SETS ({sets})
    HAVING count(*) > 0
),
spread AS (
    INSERT INTO pg_temp.history_spread
    SELECT v.first FROM value AS v
     UNION
    SELECT v.last FROM value AS v
)
SELECT count(*), count(*) FILTER (WHERE v.is_unchanged)
  FROM value AS v

-- name: in_parts
-- Test if a place is in a part of a table, of which tidsend has the page first.
substr(tidsend(p.place), 1, 4) IN (SELECT substr(int8send(f.page + n.page), 5)
                                     FROM unnest({parts}::int8[]) AS f (page)
                                    CROSS JOIN generate_series(0, {pages} - 1) AS n (page))

-- name: is_drawn
-- Test if a row is in the sample, by its key and not by its place in the table.
({hash} & {mask}) < {most}

-- name: keep_places
-- Add the places of rows, with the state that the comparison found; all other rows are as published.
INSERT INTO {places}
SELECT h.person, coalesce(s.state, 0), h.place
  FROM {found} AS h
  LEFT JOIN pg_temp.history_states AS s ON s.person = h.person

-- name: keyed_hash
-- A keyed hash. No more than half of it is stored or shown, as who has all could hash the same document with more at
-- its end. Keys of the first version have two forms, for HMAC (RFC 2104), which takes twice the time; others have one.
CASE WHEN {key}.inner_key = {key}.outer_key THEN sha256({key}.inner_key || convert_to({document}, 'UTF8'))
     ELSE sha256({key}.outer_key || sha256({key}.inner_key || convert_to({document}, 'UTF8'))) END

-- name: mark_places
-- Mark the rows that a release publishes, and those that are withdrawn with their class; no row is both.
WITH withdrawn AS MATERIALIZED (
    SELECT d.person
      FROM pg_temp.history_departed AS d
     WHERE NOT d.is_gone
)
UPDATE {places} AS p
   SET state = CASE WHEN p.person IN (SELECT w.person FROM withdrawn AS w) THEN -1 ELSE 0 END
 WHERE (p.state <> 0 OR p.person IN (SELECT w.person FROM withdrawn AS w))  -- few rows are looked up
   AND p.person IN (SELECT e.person
                      FROM dbanon.history_member AS m
                     CROSS JOIN LATERAL unnest(m.persons, m.classes) AS e (person, class)
                     WHERE m.release_id = {release}
                       AND e.class <> 0
                     UNION ALL
                    SELECT w.person FROM withdrawn AS w)
   AND p.state <> CASE WHEN p.person IN (SELECT w.person FROM withdrawn AS w) THEN -1 ELSE 0 END

-- name: owns_places
-- True if the table of places exists as it was created, and the current role may change it; and the number for a new
-- one. Its owner could have added code that runs with the rights of the role that changes it.
SELECT EXISTS (SELECT
                 FROM pg_class AS c
                WHERE c.oid = to_regclass(%s)
                  AND c.relkind = 'r'
                  AND pg_has_role(c.relowner, 'USAGE')
                  AND NOT (c.relhasrules OR c.relhastriggers OR c.relrowsecurity OR c.relhassubclass OR c.relispartition)
                  AND NOT (c.relhasindex OR c.relchecks > 0)
                  AND NOT EXISTS (SELECT FROM pg_attrdef AS d WHERE d.adrelid = c.oid)
                  AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid)
                  AND NOT EXISTS (SELECT FROM pg_statistic_ext AS x WHERE x.stxrelid = c.oid)
                  AND ARRAY(SELECT format('%%s %%s', a.attname, a.atttypid::regtype)
                              FROM pg_attribute AS a
                             WHERE a.attrelid = c.oid
                               AND a.attnum > 0
                             ORDER BY a.attnum)
                      = ARRAY['person uuid', 'state bigint', 'place tid']),
       pg_current_xact_id()::text::bigint

-- name: person_hash
-- The first half of a keyed hash of a person.
encode(substr({hash}, 1, 16), 'hex')::uuid

-- name: places_to_read
-- The places of new and unpublished rows, and of rows with each value; the number of the former, on which decisions
-- depend, so that they do not depend on values; and the places of the latter, unless they are many.
SELECT array_agg(r.place)::text,
       (SELECT count(*) FROM pg_temp.history_came)
           + (SELECT count(*) FROM pg_temp.history_marked AS m WHERE m.state < 0),
       (SELECT array_agg(s.place)::text FROM pg_temp.history_spread AS s HAVING count(*) <= {most})
  FROM (SELECT c.place FROM pg_temp.history_came AS c
         UNION
        SELECT m.place FROM pg_temp.history_marked AS m WHERE m.state < 0
         UNION
        SELECT s.place FROM pg_temp.history_spread AS s) AS r

-- name: rows
-- The rows of parts of a table.
(SELECT s.*
   FROM unnest({parts}::int8[]) AS f (page)
  CROSS JOIN LATERAL (SELECT *
                        FROM {source} AS s
                       WHERE s.ctid >= ('(' || f.page || ',0)')::tid
                         AND s.ctid < ('(' || f.page + {pages} || ',0)')::tid
                      OFFSET 0) AS s)

-- name: some_places
-- Test if a row came since a snapshot, or lies in one of some places.
s.ctid = ANY ({places}::tid[] || ARRAY(SELECT c.place FROM pg_temp.history_came AS c))

-- name: source_facts
-- The present snapshot, a document that changes when a table is rewritten or values change without a new row version,
-- true if the identity of the server is readable, and the number of pages; no row if the relation is no plain table.
SELECT pg_current_snapshot()::text,
       json_build_array(d.oid, c.oid, pg_relation_filenode(c.oid),
                        (SELECT json_agg(json_build_array(a.attnum, a.attname, a.atttypid, a.atttypmod,
                                                          a.attcollation, a.attgenerated, a.attmissingval::text)
                                         ORDER BY a.attnum)
                           FROM pg_attribute AS a
                          WHERE a.attrelid = c.oid
                            AND a.attnum > 0
                            AND NOT a.attisdropped))::text,
       has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE'),
       pg_relation_size(c.oid) / current_setting('block_size')::int8
  FROM pg_class AS c
  JOIN pg_am AS m ON m.oid = c.relam
  JOIN pg_database AS d ON d.datname = current_database()
 WHERE c.oid = %(relation)s
   AND c.relkind = 'r'
   AND m.amname = 'heap'
   AND NOT c.relrowsecurity
   AND has_table_privilege(c.oid, 'SELECT')
   AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid))
