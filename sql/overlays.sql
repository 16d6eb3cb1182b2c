-- Cells of all releases of a series, and comparisons of pairs of releases.

-- name: cells
-- Divide the persons into cells: persons of a cell were in the same classes in all releases, and the same releases,
-- of any relation, showed them with equal values in each column. A person that changed once is identified by the
-- release and the class, others by a hash. Equality of values is computed once for all persons with the same ones; no
-- text contains the byte zero, with which the number of a release begins. persons: how many alike an entry stands for.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
WITH past AS MATERIALIZED (
    SELECT e.person, string_agg(int8send(e.release_id) || int8send(e.shown), '' ORDER BY e.release_id) AS classes,
           min(e.held) FILTER (WHERE e.class <> 0) <> max(e.held) AS is_changed, min(e.persons) AS persons
      FROM {entries} AS e
     WHERE e.place = 1
     GROUP BY e.person
),
valued AS MATERIALIZED (
    SELECT e.person, array_agg(e.release_id ORDER BY e.release_id) AS releases,
           array_agg(e.held ORDER BY e.release_id) AS held
      FROM {entries} AS e
     WHERE e.place = 1
       AND e.class <> 0
       AND e.person IN (SELECT p.person FROM past AS p WHERE p.is_changed)
     GROUP BY e.person
),
course AS MATERIALIZED (
    SELECT row_number() OVER () AS number, d.releases, d.held
      FROM (SELECT DISTINCT v.releases, v.held
              FROM valued AS v) AS d
),
step AS MATERIALIZED (
    SELECT c.number, u.release_id, u.held
      FROM course AS c
     CROSS JOIN LATERAL unnest(c.releases, c.held) AS u (release_id, held)
),
part AS MATERIALIZED (
    SELECT h.held, ROW(v.table_schema, v.table_name, j.key)::text AS name,
           array_agg(j.value::text ORDER BY j.value::text) AS shown
      FROM (SELECT DISTINCT e.held, e.place, e.value_id
              FROM {entries} AS e
             WHERE e.held IN (SELECT s.held FROM step AS s)) AS h
      JOIN dbanon.history_value AS v ON v.value_id = h.value_id
     CROSS JOIN LATERAL jsonb_each(v.value) AS j
     GROUP BY h.held, v.table_schema, v.table_name, j.key
     UNION ALL
    SELECT DISTINCT s.held, '', ARRAY[s.held::text]  -- rows of several columns, taken together
      FROM step AS s
),
pattern AS (
    SELECT f.number, array_agg(f.first ORDER BY f.release_id, f.name)::text AS equals
      FROM (SELECT s.number, s.release_id, p.name,
                   min(s.release_id) OVER (PARTITION BY s.number, p.name, p.shown) AS first
              FROM step AS s
              JOIN part AS p ON p.held = s.held) AS f
     GROUP BY f.number
)
SELECT p.person, p.persons,
       CASE WHEN length(p.classes) = 16 THEN p.classes
            ELSE sha256(coalesce(convert_to(e.equals, 'UTF8'), '') || p.classes)
       END AS cell
  FROM past AS p
  LEFT JOIN valued AS v ON v.person = p.person
  LEFT JOIN course AS c ON c.releases = v.releases AND c.held = v.held
  LEFT JOIN pattern AS e ON e.number = c.number

-- name: classes_of_overlay
-- The same input, without values.
classes AS (
    SELECT c.class, sum(c.members::double precision)::bigint AS members, count(*) AS distinct_values
      FROM cells AS c
     GROUP BY c.class
)

-- name: compare
-- Compare releases with the newest, in "now", as a reader of both can: the sizes of the sets of persons in a class of
-- both, or of one and not the other; and the values of both, because a class of one may show fewer values of a column
-- than that of the other, and a person in both has one of the values of both. All releases are compared at once: from
-- 0, before the first compared release, to "never", after the last, most sets and classes stay the same. shown: the
-- membership of the classes, with the persons to count. The values of a class are bits of words of 32: there are fewer
-- of these than of persons and values. Values are found by their numbers, as the planner does not know how many a table
-- has; left joins keep it from expecting none. Numbers of persons are added as floating point, which is exact up to
-- 2 ^ 53 and needs no numeric.
WITH release AS MATERIALIZED (
    SELECT r.release_id, r.shown_id, r.relation, r.k
      FROM {releases}
),
asked AS MATERIALIZED (
    SELECT a.release_id, a.place, a.l, dense_rank() OVER (ORDER BY a.name) AS number, a.name
      FROM unnest({numbers}::bigint[], {places}::integer[], {columns}::text[], {least}::bigint[])
           AS a (release_id, place, name, l)
),
coded AS MATERIALIZED (
    SELECT r.number, r.value_id, r.code / 32 AS word,
           CASE WHEN r.value IS NULL THEN 0 ELSE 1 << (r.code % 32)::integer END AS mask
      FROM (SELECT c.*, dense_rank() OVER (ORDER BY c.number, c.value) AS code
              FROM (SELECT n.number, v.value_id, v.value -> n.name AS value
                      FROM (SELECT DISTINCT e.value_id FROM {shown} AS e) AS s
                      JOIN dbanon.history_value AS v ON v.value_id = s.value_id
                     CROSS JOIN (SELECT DISTINCT a.number, a.name FROM asked AS a) AS n
                    OFFSET 0) AS c) AS r
),
now AS MATERIALIZED (
    SELECT b.shown, o.number, o.word, bit_or(o.mask) AS mask,
           sum(b.persons::double precision) FILTER (WHERE b.place = 1) AS persons
      FROM {now} AS b
      LEFT JOIN coded AS o ON o.value_id = b.value_id
     GROUP BY b.shown, o.number, o.word
),
counted AS MATERIALIZED (  -- each person once for the first column, or for none
    SELECT e.relation, e.shown, CASE WHEN e.release_id > r.first THEN e.release_id ELSE 0 END AS since,
           CASE WHEN e.until <= r.last THEN e.until ELSE {never} END AS until,
           n.shown AS now, o.number, o.word, bit_or(o.mask) AS mask,
           sum(e.persons::double precision) FILTER (WHERE e.place = 1 AND e.is_counted) AS persons
      FROM {shown} AS e
      JOIN (SELECT r.relation, min(r.shown_id) AS first, max(r.shown_id) AS last
              FROM release AS r
             GROUP BY r.relation) AS r ON r.relation = e.relation
      LEFT JOIN coded AS o ON o.value_id = e.value_id
      LEFT JOIN {now} AS n ON n.person = e.person AND n.place = 1
     WHERE e.class <> 0
       AND e.release_id <= r.last
       AND (e.until > r.first OR e.until IS NULL)
     GROUP BY e.relation, e.shown, 3, 4, n.shown, o.number, o.word
),
met AS (
    SELECT c.relation, c.shown, c.now, c.since, c.until, c.persons
      FROM counted AS c
     WHERE c.persons > 0
       AND (c.number = 1 OR c.number IS NULL)
),
change AS (
    SELECT c.relation, c.shown, c.now, c.since, sum(c.persons) AS persons
      FROM (SELECT m.relation, m.shown, m.now, m.since, m.persons
              FROM met AS m
             UNION ALL
            SELECT m.relation, m.shown, m.now, m.until, -m.persons
              FROM met AS m
             WHERE m.until < {never}
             UNION ALL
            SELECT r.relation, NULL, n.shown, 0, n.persons
              FROM (SELECT DISTINCT r.relation FROM release AS r) AS r
             CROSS JOIN now AS n
             WHERE n.number = 1
                OR n.number IS NULL
             UNION ALL
            SELECT m.relation, NULL, m.now, m.since, -m.persons
              FROM met AS m
             WHERE m.now IS NOT NULL
             UNION ALL
            SELECT m.relation, NULL, m.now, m.until, m.persons
              FROM met AS m
             WHERE m.now IS NOT NULL
               AND m.until < {never}) AS c
     GROUP BY c.relation, c.shown, c.now, c.since
),
pair AS MATERIALIZED (
    SELECT p.relation, p.shown, p.now, p.since, p.until, p.persons
      FROM (SELECT c.relation, c.shown, c.now, c.since, lead(c.since, 1, {never}) OVER moments AS until,
                   sum(c.persons) OVER moments AS persons
              FROM change AS c
            WINDOW moments AS (PARTITION BY c.relation, c.shown, c.now ORDER BY c.since)) AS p
     WHERE p.persons > 0
),
sized AS MATERIALIZED (
    SELECT p.relation, p.since, p.until, p.is_in_both, p.persons, count(*) AS sets
      FROM (SELECT p.relation, p.since, p.until, p.persons,
                   num_nulls(p.shown, p.now) = 0 AS is_in_both
              FROM pair AS p) AS p
     GROUP BY p.relation, p.since, p.until, p.is_in_both, p.persons
),
valued AS MATERIALIZED (
    SELECT c.relation, c.shown, c.since, c.until, c.number, c.word, bit_or(c.mask) AS mask
      FROM counted AS c
     WHERE c.mask <> 0
     GROUP BY c.relation, c.shown, c.since, c.until, c.number, c.word
),
passing AS MATERIALIZED (  -- values that not all compared releases show of the class
    SELECT v.relation, v.shown, v.since, v.until, v.number, v.word, v.mask
      FROM valued AS v
      LEFT JOIN valued AS s
        ON s.relation = v.relation
       AND s.shown = v.shown
       AND s.number = v.number
       AND s.word = v.word
       AND s.since = 0
       AND s.until = {never}
     WHERE v.mask & ~coalesce(s.mask, 0) <> 0
),
stage AS MATERIALIZED (
    SELECT b.relation, b.shown, b.since,
           lead(b.since, 1, {never}) OVER (PARTITION BY b.relation, b.shown ORDER BY b.since) AS until
      FROM (SELECT p.relation, p.shown, 0 AS since FROM passing AS p
             UNION
            SELECT p.relation, p.shown, p.since FROM passing AS p
             UNION
            SELECT p.relation, p.shown, p.until FROM passing AS p) AS b
),
possible AS MATERIALIZED (
    SELECT v.relation, v.shown, coalesce(t.since, 0) AS since, coalesce(t.until, {never}) AS until,
           v.number, v.word, bit_or(v.mask) AS mask
      FROM (SELECT v.relation, v.shown, v.since, v.until, v.number, v.word, v.mask
              FROM valued AS v
             WHERE v.since = 0
               AND v.until = {never}
             UNION ALL
            SELECT p.relation, p.shown, p.since, p.until, p.number, p.word, p.mask
              FROM passing AS p) AS v
      LEFT JOIN stage AS t
        ON t.relation = v.relation
       AND t.shown = v.shown
       AND t.since >= v.since
       AND t.since < v.until
     GROUP BY v.relation, v.shown, t.since, t.until, v.number, v.word
),
shared AS MATERIALIZED (  -- else the values of all classes might be joined with those of all first
    SELECT p.relation, p.shown, p.now, greatest(p.since, v.since) AS since, least(p.until, v.until) AS until,
           p.persons, v.number, v.word, v.mask
      FROM pair AS p
      JOIN possible AS v
        ON v.relation = p.relation
       AND v.shown = p.shown
       AND v.since < p.until
       AND v.until > p.since
     WHERE p.now IS NOT NULL
),
left_over AS MATERIALIZED (
    SELECT c.relation, c.since, c.until, c.number, c.candidates, sum(c.persons) AS persons
      FROM (SELECT s.relation, s.since, s.until, s.number, s.persons,
                   sum(length(replace((s.mask & n.mask)::bit(32)::text, '0', ''))) AS candidates
              FROM shared AS s
              JOIN now AS n ON n.shown = s.now AND n.number = s.number AND n.word = s.word
             GROUP BY s.relation, s.shown, s.now, s.since, s.until, s.number, s.persons
            HAVING bit_or(s.mask & n.mask) <> 0) AS c
     GROUP BY c.relation, c.since, c.until, c.number, c.candidates
)
SELECT r.release_id, f.persons, f.smallest, f.below, f.in_both, e.below, e.to_one
  FROM release AS r
 CROSS JOIN LATERAL (
        SELECT coalesce(sum(s.persons * s.sets), 0)::bigint AS persons, min(s.persons)::bigint AS smallest,
               coalesce(sum(s.persons * s.sets) FILTER (WHERE s.persons < r.k), 0)::bigint AS below,
               coalesce(sum(s.persons * s.sets) FILTER (WHERE s.is_in_both), 0)::bigint AS in_both
          FROM sized AS s
         WHERE s.relation = r.relation
           AND s.since <= r.shown_id
           AND s.until > r.shown_id) AS f
 CROSS JOIN LATERAL (
        SELECT array_agg(l.below ORDER BY a.place) AS below, array_agg(l.to_one ORDER BY a.place) AS to_one
          FROM asked AS a
         CROSS JOIN LATERAL (
                SELECT coalesce(sum(o.persons) FILTER (WHERE o.candidates < a.l), 0)::bigint AS below,
                       coalesce(sum(o.persons) FILTER (WHERE o.candidates = 1), 0)::bigint AS to_one
                  FROM left_over AS o
                 WHERE o.number = a.number
                   AND o.relation = r.relation
                   AND o.since <= r.shown_id
                   AND o.until > r.shown_id) AS l
         WHERE a.release_id = r.release_id) AS e

-- name: compare_first
-- Compare the first release of a series with itself, as others will be with it: the sizes of its classes, and the
-- number of values of a column that each shows. The values of a class are bits of words of 32, as in "compare".
WITH coded AS MATERIALIZED (
    SELECT r.value_id, r.code / 32 AS word, 1 << (r.code %% 32)::integer AS mask
      FROM (SELECT c.value_id, dense_rank() OVER (ORDER BY c.value) AS code
              FROM (SELECT v.value_id, v.value -> %(column)s::text AS value
                      FROM (SELECT DISTINCT o.value_id FROM pg_temp.history_counted AS o) AS s
                      JOIN dbanon.history_value AS v ON v.value_id = s.value_id
                    OFFSET 0) AS c
             WHERE c.value IS NOT NULL) AS r
),
shown AS (
    SELECT o.class, c.word, bit_or(c.mask) AS mask, sum(o.persons) AS persons
      FROM pg_temp.history_counted AS o
      LEFT JOIN coded AS c ON c.value_id = o.value_id
     GROUP BY o.class, c.word
),
class AS (
    SELECT sum(s.persons::double precision)::bigint AS persons,
           sum(length(replace(s.mask::bit(32)::text, '0', ''))) AS candidates
      FROM shown AS s
     GROUP BY s.class
)
SELECT coalesce(sum(c.persons), 0)::bigint, min(c.persons)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.persons < %(k)s), 0)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.candidates < %(l)s), 0)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.candidates = 1), 0)::bigint
  FROM class AS c

-- name: count_all_cells
-- Count the persons of every cell, and those in too small cells, when only persons that the newest release may
-- concern have a cell in the table. All others were in one class, of the first release.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT sum(h.persons)::bigint AS persons
          FROM pg_temp.history_cells AS h
         GROUP BY h.cell
         UNION ALL
        SELECT sum(e.persons)::bigint
          FROM (SELECT e.shown, e.persons
                  FROM pg_temp.history_entries AS e
                 WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
                 UNION ALL
                SELECT r.class, r.persons
                  FROM pg_temp.history_rest AS r) AS e
         GROUP BY e.shown) AS c

-- name: count_cells
-- Count the persons of every cell, and those in cells of too few.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT sum(h.persons)::bigint AS persons
          FROM pg_temp.history_cells AS h
         GROUP BY h.cell) AS c

-- name: count_first
-- Count the persons with the same values in a class of the first release of a series. Each has one row in one
-- release, so that the classes are the cells.
CREATE TEMPORARY TABLE history_counted ON COMMIT DROP AS
SELECT e.class, e.value_id, count(*)::integer AS persons
  FROM {entries} AS e
 GROUP BY e.class, e.value_id

-- name: count_moved
-- True if a cell was split, and the number of persons whose cell may have changed.
SELECT coalesce(bool_or(m.is_split), false), count(*)
  FROM pg_temp.history_moved AS m

-- name: count_owed
-- Count, for each release, the cells that it showed and that are smaller than its k; and the largest k and the
-- smallest size among these cells. Persons without a cell in the table were in one class, of the first release.
WITH member AS MATERIALIZED (
    SELECT h.person, h.cell, h.persons
      FROM pg_temp.history_cells AS h
     UNION ALL
    SELECT e.person, int8send(e.shown), e.persons
      FROM pg_temp.history_entries AS e
     WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
),
small AS MATERIALIZED (
    SELECT m.cell, sum(m.persons)::bigint AS persons
      FROM member AS m
     GROUP BY m.cell
    HAVING sum(m.persons) < %(most)s
),
stay AS (
    SELECT s.cell, s.persons, e.relation, e.release_id, e.class, e.until
      FROM small AS s
      JOIN member AS m ON m.cell = s.cell
      JOIN pg_temp.history_entries AS e ON e.person = m.person
     WHERE e.place = 1
),
promised AS (
    SELECT s.cell, s.persons, coalesce(min(a.k), %(most)s) AS k
      FROM stay AS s
      LEFT JOIN unnest(%(releases)s::bigint[], %(relations)s::bigint[], %(ks)s::integer[])
                AS a (release_id, relation, k)
        ON a.relation = s.relation
       AND a.release_id >= s.release_id
       AND (a.release_id < s.until OR s.until IS NULL)
       AND s.class <> 0
     GROUP BY s.cell, s.persons
)
SELECT count(*), max(p.k), min(p.persons)
  FROM promised AS p
 WHERE p.persons < p.k

-- name: count_shown
-- How many persons a relation showed in a release.
SELECT count(*)
  FROM ({shown}) AS r
 WHERE r.place = 1

-- name: count_touched
-- The number of persons in the classes of persons that a release changed: about as many have another cell now.
SELECT coalesce(sum(e.persons), 0)::bigint
  FROM pg_temp.history_entries AS e
 WHERE e.relation = %(relation)s
   AND e.release_id < %(newest)s
   AND (e.until = %(newest)s OR e.until IS NULL)
   AND e.place = 1
   AND e.shown IN (SELECT w.shown
                     FROM pg_temp.history_entries AS w
                    WHERE w.relation = %(relation)s
                      AND w.until = %(newest)s
                      AND w.class <> 0)

-- name: counted_all
-- The membership of persons who are all to be counted.
(SELECT s.*, true AS is_counted
   FROM {shown} AS s)

-- name: counted_among
-- The membership of persons of whom only some are to be counted.
(SELECT s.*, b.person IS NOT NULL AS is_counted
   FROM {shown} AS s
   LEFT JOIN (SELECT DISTINCT b.person FROM {before} AS b) AS b ON b.person = s.person)

-- name: create_linked
-- The persons of the tables of a dataset, with all that is shown of the classes of each in one of them.
CREATE TEMPORARY TABLE {linked} (
    part integer NOT NULL,
    person uuid NOT NULL,
    class text NOT NULL
)
ON COMMIT DROP

-- name: entries_of
-- The membership of some persons.
CREATE TEMPORARY TABLE {entries} ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place, e.persons
  FROM {among} AS e
 WHERE e.person IN (SELECT p.person FROM {persons} AS p WHERE {condition})

-- name: find_classes
-- Find the membership of all persons that were ever in the classes of some persons.
CREATE TEMPORARY TABLE history_classes ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place, e.persons
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT o.person
                      FROM pg_temp.history_entries AS o
                     WHERE (o.relation, o.shown) IN (SELECT p.relation, p.shown
                                                       FROM pg_temp.history_of_paired AS p
                                                      WHERE p.class <> 0))

-- name: find_earlier
-- Find the previous rows of the persons that a release changed.
CREATE TEMPORARY TABLE history_earlier ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place, e.persons
  FROM pg_temp.history_entries AS e
 WHERE e.release_id < %(newest)s
   AND e.person IN (SELECT n.person FROM pg_temp.history_newest AS n)

-- name: find_moved
-- Find the persons whose cell may change with a release: those that it changed, and those in a cell with them.
-- former: the previous cell; is_split: true if its members are in several cells now.
CREATE TEMPORARY TABLE history_moved ON COMMIT DROP AS
WITH moved AS (
    SELECT c.person, f.cell AS former, c.cell
      FROM pg_temp.history_cells AS c
      JOIN (SELECT DISTINCT n.person
              FROM pg_temp.history_newest AS n) AS n ON n.person = c.person
      LEFT JOIN pg_temp.history_left AS f ON f.person = c.person
     UNION ALL
    SELECT c.person, c.cell, c.cell
      FROM pg_temp.history_cells AS c
     WHERE c.cell IN (SELECT f.cell FROM pg_temp.history_left AS f)
)
SELECT m.person, m.former, m.cell, s.former IS NOT NULL AS is_split
  FROM moved AS m
  LEFT JOIN (SELECT p.former
               FROM moved AS p
              WHERE p.former IS NOT NULL
              GROUP BY p.former
             HAVING count(DISTINCT p.cell) > 1) AS s ON s.former = m.former

-- name: find_near
-- Find the membership of the persons that a release may concern: those that changed since the first release, and
-- those of the first release alone that are in a class of a person that this release changed. No other person shares
-- a cell with any of them.
CREATE TEMPORARY TABLE history_near ON COMMIT DROP AS
WITH shown AS MATERIALIZED (
    SELECT n.shown
      FROM pg_temp.history_newest AS n
     UNION
    SELECT e.shown
      FROM pg_temp.history_earlier AS e
),
near AS MATERIALIZED (
    SELECT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.release_id <> %(first)s
     UNION
    SELECT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.shown IN (SELECT s.shown FROM shown AS s)
)
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place, e.persons
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT n.person FROM near AS n)

-- name: find_newest
-- Find the changes of a release.
CREATE TEMPORARY TABLE history_newest ON COMMIT DROP AS
SELECT e.person, e.shown
  FROM pg_temp.history_entries AS e
 WHERE e.release_id = %(newest)s

-- name: find_paired
-- Find the persons for whom a comparison with the newest release may differ from one with its predecessor: those in
-- none of its classes, or in a class that gained or lost persons.
CREATE TEMPORARY TABLE history_paired ON COMMIT DROP AS
WITH changed AS (
    SELECT n.shown
      FROM pg_temp.history_newest AS n
     UNION
    SELECT w.shown
      FROM pg_temp.history_was AS w
)
SELECT c.person
  FROM pg_temp.history_cells AS c
  LEFT JOIN pg_temp.history_now AS s ON s.person = c.person
 WHERE s.person IS NULL
    OR s.shown IN (SELECT n.shown FROM changed AS n)

-- name: input_of_overlay
-- The input of a model of a sensitive column: a class is a cell in a run of releases. Cells come first, so that one
-- sort groups and numbers them.
cells AS (
    SELECT {class} AS class, o.{code} AS value,
           {label} AS label, {number} AS number, sum(o.{persons}::double precision)::bigint AS members
      FROM overlay AS o
     GROUP BY {quasi}, {run}, o.{code}
)

-- name: judge
-- What cells achieve of a model by the values that releases show, those of each run of releases once. Values are
-- found by their numbers: how many there are of a table, no planner knows.
WITH value AS MATERIALIZED (
    SELECT c.*{codes}
      FROM (SELECT v.value_id{columns}
              FROM (SELECT DISTINCT s.value_id FROM {among} AS s) AS d
              JOIN dbanon.history_value AS v ON v.value_id = d.value_id) AS c
),
run AS MATERIALIZED (
{runs}),
overlay AS (
{overlay})
SELECT r.releases, j.*
  FROM ({judged}) AS j
  JOIN (SELECT DISTINCT n.run, n.releases FROM run AS n) AS r ON r.run = j.run

-- name: knows_all
-- Test if every stored person was ever in a release of the table of persons.
SELECT NOT EXISTS (SELECT
                     FROM pg_temp.history_entries AS e
                    WHERE NOT EXISTS (SELECT
                                        FROM pg_temp.history_entries AS p
                                       WHERE p.person = e.person
                                         AND p.release_id = ANY (%(releases)s)))

-- name: link
-- Add the persons of one table of a dataset, with how many rows each has if that counts.
INSERT INTO {linked} (part, person, class)
SELECT {part}, r.person, concat_ws(':', {part}, min(r.shown), {times})
  FROM {rows} AS r
 GROUP BY r.person

-- name: linked_cells
-- Put the persons of some tables in cells: those of one are shown alike in each.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
SELECT l.person, array_agg(l.class ORDER BY l.class)::text AS cell, 1::bigint AS persons
  FROM {linked} AS l
 WHERE l.part = ANY ({parts}::integer[])
 GROUP BY l.person

-- name: numbers
-- The columns with only numeric stored values.
SELECT j.key
  FROM dbanon.history_value AS v
 CROSS JOIN LATERAL jsonb_each(v.value) AS j
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
 GROUP BY j.key
HAVING bool_and(jsonb_typeof(j.value) IN ('number', 'null'))

-- name: of_several
-- The releases that show a person in several rows.
SELECT r.release_id
  FROM {releases}
 WHERE EXISTS (SELECT FROM ({shown}) AS s WHERE s.place > 1)

-- name: overlay
-- The published values of persons in each run of releases, with the cell in place of the class.
SELECT n.run AS {run}, c.{known_as} AS {cell}, e.person AS {person}, e.persons AS {persons}{names}
  FROM {entries} AS e
  JOIN run AS n
    ON n.relation = e.relation
   AND n.since = e.release_id
   AND n.until = coalesce(e.until, {never})
  JOIN {cells} AS c ON c.person = e.person
  JOIN value AS u ON u.value_id = e.value_id
 WHERE e.class <> 0

-- name: overlay_first
-- The values of the persons of the first release of a series, with their class, which is their cell.
SELECT 1::bigint AS {run}, e.class AS {cell}, NULL::uuid AS {person}, e.persons AS {persons}{names}
  FROM pg_temp.history_counted AS e
  JOIN value AS u ON u.value_id = e.value_id

-- name: runs
-- The runs of releases that show the rows of a person unchanged. Persons of a cell were always in the same releases,
-- so that a cell is judged once in each run.
SELECT dense_rank() OVER (ORDER BY c.releases) AS run, c.releases, s.relation, s.since, s.until
  FROM (SELECT DISTINCT e.relation, e.release_id AS since, coalesce(e.until, {never}) AS until
          FROM {entries} AS e
         WHERE e.class <> 0) AS s
 CROSS JOIN LATERAL (
        SELECT array_agg(r.release_id ORDER BY r.release_id) AS releases
          FROM {releases}
         WHERE r.relation = s.relation
           AND r.shown_id >= s.since
           AND r.shown_id < s.until) AS c
 WHERE c.releases IS NOT NULL
