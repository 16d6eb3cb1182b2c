-- Cells of all releases of a series, and pairs of releases held against each other.

-- name: cells
-- Put the persons in cells: those of one have been in the same classes of all releases, and the same
-- releases, of whatever relation, showed them with equal values of each column. Who changed once is
-- told by when, and to which classes. Which values are equal is worked out once for all persons who
-- have had the same ones.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
WITH change AS (
    SELECT e.person, count(*) AS changes, min(e.release_id) AS release_id, min(e.shown) AS shown
      FROM {entries} AS e
     WHERE e.place = 1
     GROUP BY e.person
),
past AS MATERIALIZED (
    SELECT e.person,
           string_agg(e.release_id::text || ':' || e.shown::text, ';' ORDER BY e.release_id) AS classes,
           CASE WHEN min(e.held) FILTER (WHERE e.class <> 0) <> max(e.held)
                THEN array_agg(e.release_id ORDER BY e.release_id) FILTER (WHERE e.class <> 0)
           END AS releases,
           array_agg(e.held ORDER BY e.release_id) FILTER (WHERE e.class <> 0) AS held
      FROM {entries} AS e
     WHERE e.place = 1
       AND e.person IN (SELECT c.person FROM change AS c WHERE c.changes > 1)
     GROUP BY e.person
),
course AS MATERIALIZED (
    SELECT row_number() OVER () AS number, d.releases, d.held
      FROM (SELECT DISTINCT p.releases, p.held
              FROM past AS p
             WHERE p.releases IS NOT NULL) AS d
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
SELECT c.person, int8send(c.release_id) || int8send(c.shown) AS cell
  FROM change AS c
 WHERE c.changes = 1
 UNION ALL
SELECT p.person, sha256(convert_to(p.classes || coalesce(e.equals, ''), 'UTF8')) AS cell
  FROM past AS p
  LEFT JOIN course AS c ON c.releases = p.releases AND c.held = p.held
  LEFT JOIN pattern AS e ON e.number = c.number

-- name: compare
-- Compare releases with the newest, in "now", as a reader of both can: how many persons are in the classes
-- of so few, in both or in one and not the other.
SELECT r.release_id, p.persons, p.smallest, p.below, p.in_both
  FROM {releases}
 CROSS JOIN LATERAL (
        SELECT coalesce(sum(c.persons), 0)::bigint AS persons, min(c.persons) AS smallest,
               coalesce(sum(c.persons) FILTER (WHERE c.persons < r.k), 0)::bigint AS below,
               coalesce(sum(c.persons) FILTER (WHERE c.is_in_both), 0)::bigint AS in_both
          FROM (SELECT count(*) AS persons,
                       bool_and(a.shown IS NOT NULL AND b.shown IS NOT NULL) AS is_in_both
                  FROM (SELECT s.person, s.shown FROM ({before}) AS s WHERE s.place = 1) AS a
                  FULL JOIN (SELECT s.person, s.shown
                               FROM {now} AS s
                              WHERE s.place = 1) AS b USING (person)
                 GROUP BY a.shown, b.shown) AS c) AS p

-- name: compare_first
-- Compare the first release of a series with itself, as others will be with it.
SELECT coalesce(sum(c.persons), 0)::bigint, min(c.persons)::bigint,
       coalesce(sum(c.persons) FILTER (WHERE c.persons < %(k)s), 0)::bigint
  FROM (SELECT sum(o.persons) AS persons
          FROM pg_temp.history_counted AS o
         GROUP BY o.class) AS c

-- name: count_all_cells
-- Count the persons of every cell, and those in cells of too few, where only those have a cell written
-- down whom the newest release may concern. All others were in one class, of the first release.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons
          FROM pg_temp.history_cells AS h
         GROUP BY h.cell
         UNION ALL
        SELECT count(*)
          FROM pg_temp.history_entries AS e
         WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
         GROUP BY e.shown) AS c

-- name: count_cells
-- Count the persons of every cell, and those in cells of too few.
SELECT count(*), min(c.persons), count(*) FILTER (WHERE c.persons < %(k)s),
       coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons FROM pg_temp.history_cells AS h GROUP BY h.cell) AS c

-- name: count_first
-- Count the persons whom the first release of a series shows with the same values in a class. Each has one
-- row, and no other release to be told by, so that the classes are the cells.
CREATE TEMPORARY TABLE history_counted ON COMMIT DROP AS
SELECT e.class, e.value_id, count(*) AS persons
  FROM pg_temp.history_entries AS e
 GROUP BY e.class, e.value_id

-- name: count_moved
-- How many of those whose cell may be another one had none, whether a cell was split, and how many all
-- are.
SELECT count(*) FILTER (WHERE m.former IS NULL), coalesce(bool_or(m.is_split), false), count(*)
  FROM pg_temp.history_moved AS m

-- name: count_owed
-- Count the cells of fewer persons than each release asks that ever showed them, of those that have fewer
-- than some release asks; and the most that one of these cells was promised, and the least that one has.
-- Who has no cell written down was in one class, of the first release.
WITH member AS MATERIALIZED (
    SELECT h.person, h.cell
      FROM pg_temp.history_cells AS h
     UNION ALL
    SELECT e.person, int8send(e.shown)
      FROM pg_temp.history_entries AS e
     WHERE NOT EXISTS (SELECT FROM pg_temp.history_cells AS h WHERE h.person = e.person)
),
small AS MATERIALIZED (
    SELECT m.cell, count(*) AS persons
      FROM member AS m
     GROUP BY m.cell
    HAVING count(*) < %(most)s
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

-- name: create_linked
-- The persons of the tables of a dataset, with all that is shown of the classes of each in one of them.
CREATE TEMPORARY TABLE {linked} (
    part integer NOT NULL,
    person uuid NOT NULL,
    class text NOT NULL
)
ON COMMIT DROP

-- name: entries_of
-- What is remembered of some persons.
CREATE TEMPORARY TABLE {entries} ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM {among} AS e
 WHERE e.person IN (SELECT p.person FROM {persons} AS p WHERE {condition})

-- name: find_classes
-- Find what is remembered of those who ever came to the classes in which some persons ever were.
CREATE TEMPORARY TABLE history_classes ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT o.person
                      FROM pg_temp.history_entries AS o
                     WHERE (o.relation, o.shown) IN (SELECT p.relation, p.shown
                                                       FROM pg_temp.history_of_paired AS p
                                                      WHERE p.class <> 0))

-- name: find_earlier
-- Find what those whom a release changed had been before.
CREATE TEMPORARY TABLE history_earlier ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.release_id < %(newest)s
   AND e.person IN (SELECT n.person FROM pg_temp.history_newest AS n)

-- name: find_moved
-- Find those whose cell may be another one with a release: who changed in it, and who was in a cell
-- with them. former: the cell of before; is_split: whether its members are in several now.
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
-- Find what is remembered of those whom a release may concern: who changed since the first release, and
-- who was only in that one, in a class of somebody whom this release changed. Nobody else shares a cell
-- with any of them.
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
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until, e.shown, e.held, e.place
  FROM pg_temp.history_entries AS e
 WHERE e.person IN (SELECT n.person FROM near AS n)

-- name: find_newest
-- Find what a release changed.
CREATE TEMPORARY TABLE history_newest ON COMMIT DROP AS
SELECT e.person, e.shown
  FROM pg_temp.history_entries AS e
 WHERE e.release_id = %(newest)s

-- name: find_paired
-- Find those of whom comparing a release with others may tell something else than comparing the one
-- before it: who is in none of its classes, or in one that somebody came to or went from.
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
-- What a model of a sensitive column reads of an overlay.
cells AS (
    SELECT dense_rank() OVER (ORDER BY {quasi}) AS class,
           dense_rank() OVER (ORDER BY o.{value}) AS value,
           {label} AS label, {number} AS number, count(*) AS members
      FROM overlay AS o
     GROUP BY {quasi}, o.{value}
),
classes AS (
    SELECT c.class, sum(c.members)::bigint AS members, count(*) AS distinct_values
      FROM cells AS c
     GROUP BY c.class
)

-- name: intersect
-- Compare the values of releases with those of the newest, in "now": what a class shows of a column in one
-- may be less in the other, and somebody who was in both has one of the values of both. shown: all that a
-- release shows of the classes of the persons in "before". Each step is joined to the next alone: to join
-- the values first, of all classes with all, would take long. Values are found by their numbers: how many
-- there are of a table, no planner knows.
WITH coded AS MATERIALIZED (
    SELECT c.name, c.value_id, dense_rank() OVER (PARTITION BY c.name ORDER BY c.value) AS code
      FROM (SELECT n.name, v.value_id, v.value -> n.name AS value
              FROM (SELECT a.value_id FROM {among} AS a UNION SELECT b.value_id FROM {now} AS b) AS s
              JOIN dbanon.history_value AS v ON v.value_id = s.value_id
             CROSS JOIN unnest({columns}::text[]) AS n (name)
            OFFSET 0) AS c
     WHERE c.value IS NOT NULL
),
possible_now AS MATERIALIZED (
    SELECT DISTINCT c.name, b.shown, c.code
      FROM {now} AS b
      JOIN coded AS c ON c.value_id = b.value_id
)
SELECT r.release_id, r.name, r.l, i.below, i.to_one
  FROM {releases}
 CROSS JOIN LATERAL (
    WITH pair AS MATERIALIZED (
        SELECT a.shown AS before, b.shown AS now, count(*) AS persons
          FROM ({before}) AS a
          JOIN {now} AS b ON b.person = a.person
         WHERE a.place = 1
           AND b.place = 1
         GROUP BY a.shown, b.shown
    ),
    possible AS MATERIALIZED (
        SELECT p.before, p.now, p.persons, s.code
          FROM pair AS p
          JOIN (SELECT DISTINCT a.shown, c.code
                  FROM ({shown}) AS a
                  JOIN coded AS c ON c.value_id = a.value_id
                 WHERE c.name = r.name) AS s ON s.shown = p.before
    ),
    left_over AS (
        SELECT p.before, p.now, p.persons, count(*) AS candidates
          FROM possible AS p
          JOIN possible_now AS s ON s.name = r.name AND s.shown = p.now AND s.code = p.code
         GROUP BY p.before, p.now, p.persons
    )
    SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates < r.l), 0)::bigint AS below,
           coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint AS to_one
      FROM left_over AS l) AS i
 ORDER BY r.release_id, r.place

-- name: intersect_first
-- Compare the values of the first release of a series with themselves: somebody in a class has one of those
-- that it shows of a column.
WITH coded AS MATERIALIZED (
    SELECT c.value_id, dense_rank() OVER (ORDER BY c.value) AS code
      FROM (SELECT v.value_id, v.value -> %(column)s::text AS value
              FROM (SELECT DISTINCT o.value_id FROM pg_temp.history_counted AS o) AS s
              JOIN dbanon.history_value AS v ON v.value_id = s.value_id
            OFFSET 0) AS c
     WHERE c.value IS NOT NULL
),
shown AS (
    SELECT o.class, c.code, sum(o.persons) AS persons
      FROM pg_temp.history_counted AS o
      LEFT JOIN coded AS c ON c.value_id = o.value_id
     GROUP BY o.class, c.code
),
left_over AS (
    SELECT sum(s.persons) AS persons, count(s.code) AS candidates
      FROM shown AS s
     GROUP BY s.class
)
SELECT coalesce(sum(l.persons) FILTER (WHERE l.candidates BETWEEN 1 AND %(l)s - 1), 0)::bigint,
       coalesce(sum(l.persons) FILTER (WHERE l.candidates = 1), 0)::bigint
  FROM left_over AS l

-- name: judge
-- What cells achieve of a model by the values that each release shows. Values are found by their numbers:
-- how many there are of a table, no planner knows.
WITH value AS MATERIALIZED (
    SELECT v.value_id{columns}
      FROM (SELECT DISTINCT s.value_id FROM {among} AS s) AS d
      JOIN dbanon.history_value AS v ON v.value_id = d.value_id
)
SELECT r.release_id, j.*
  FROM {releases}
 CROSS JOIN LATERAL (
WITH overlay AS (
{overlay})
SELECT * FROM (
{judged}) AS found) AS j

-- name: knows_all
-- Whether everybody who is remembered was ever in a release of the persons.
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
SELECT l.person, array_agg(l.class ORDER BY l.class)::text AS cell
  FROM {linked} AS l
 WHERE l.part = ANY ({parts}::integer[])
 GROUP BY l.person

-- name: numbers
-- The columns all of whose remembered values are numbers.
SELECT j.key
  FROM dbanon.history_value AS v
 CROSS JOIN LATERAL jsonb_each(v.value) AS j
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
 GROUP BY j.key
HAVING bool_and(jsonb_typeof(j.value) IN ('number', 'null'))

-- name: of_several
-- The releases that show somebody in several rows.
SELECT r.release_id
  FROM {releases}
 WHERE EXISTS (SELECT FROM ({shown}) AS s WHERE s.place > 1)

-- name: overlay
-- What was published of the persons of a release, with the cell of each in the place of its class.
SELECT c.{known_as} AS {cell}, s.person AS {person}{names}
  FROM ({shown}) AS s
  JOIN {cells} AS c ON c.person = s.person
  JOIN value AS u ON u.value_id = s.value_id

-- name: overlay_first
-- What the first release of a series shows of its persons, with their class: that is their cell.
SELECT e.class AS {cell}, e.person AS {person}{names}
  FROM pg_temp.history_entries AS e
  JOIN value AS u ON u.value_id = e.value_id
