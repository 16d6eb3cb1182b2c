-- How the rows of a source stand to what is published of them, and who left.

-- name: candidates
-- The persons of some parts of classes, with the values that are published of them, in an order that
-- nobody knows who has no key of their hashes.
SELECT t.part, m.is_gone, m.person,
       ARRAY(SELECT (v.value -> q.name)::text
               FROM unnest(%(columns)s::text[]) WITH ORDINALITY AS q (name, place)
              ORDER BY q.place) AS values
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_members AS m ON m.class = t.class
  JOIN pg_temp.history_cells AS c ON c.person = m.person AND c.cell = t.cell
  JOIN dbanon.history_value AS v ON v.value_id = m.value_id
 WHERE t.part = ANY (%(parts)s)
 ORDER BY t.part, m.person

-- name: count_leavers
-- How many are gone whom a relation shows, how many of them for longer than they may be, and since when
-- the first of them are.
SELECT coalesce(sum(cardinality(l.persons)), 0)::bigint,
       coalesce(sum(cardinality(l.persons))
                FILTER (WHERE l.missed_at < now() - %(deadline)s::interval), 0)::bigint,
       min(l.missed_at)
  FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s

-- name: count_standing
-- How many rows stay as they are published, how many were published and are not any more, how many are
-- published still though they are gone, how many went with those who did, and of how many rows the values
-- differ from those that are published; and how many of those that are gone were so for too long. fresh:
-- how many were never published.
WITH departed AS (
    SELECT count(*) FILTER (WHERE d.is_gone) AS gone,
           count(*) FILTER (WHERE NOT d.is_gone) AS others
      FROM pg_temp.history_departed AS d
),
standing AS (
    SELECT count(*) FILTER (WHERE s.place IS NULL) AS gone,
           count(*) FILTER (WHERE s.class IS NULL) AS absent,
           count(*) FILTER (WHERE s.place IS NOT NULL
                              AND s.class IS NOT NULL
                              AND NOT EXISTS (SELECT
                                                FROM pg_temp.history_departed AS d
                                               WHERE d.person = s.person)) AS changed
      FROM pg_temp.history_standing AS s
)
SELECT (SELECT count(*) FROM pg_temp.history_before AS b) - s.gone - d.others,
       s.absent - %(fresh)s + d.others,
       s.gone - d.gone,
       d.gone,
       s.changed,
       (SELECT count(*)
          FROM pg_temp.history_departed AS d
          JOIN pg_temp.history_missed AS m ON m.person = d.person
         WHERE m.is_overdue)
  FROM standing AS s
 CROSS JOIN departed AS d

-- name: count_standing_of_members
-- How many rows of a table of a dataset stay as they are published and are in the source, with these
-- values or with others; how many stay that are not in the source any more; how many go whose persons
-- are gone; of how many the values are others by now; how many came to persons whose rows stay; and how
-- many are of persons of whom none were published.
WITH value AS (
    SELECT u.person, u.value_id, sum(u.shown) AS shown, sum(u.now) AS now
      FROM (SELECT b.person, b.value_id, 1 AS shown, 0 AS now
              FROM pg_temp.history_before AS b
             UNION ALL
            SELECT s.person, s.value_id, 0, 1
              FROM pg_temp.history_source AS s
             WHERE s.person IN (SELECT b.person FROM pg_temp.history_before AS b)) AS u
     WHERE u.person NOT IN (SELECT d.person FROM {departed} AS d)
     GROUP BY u.person, u.value_id
),
person AS (
    SELECT v.person, sum(v.shown) AS shown, sum(greatest(v.shown - v.now, 0)) AS gone,
           sum(greatest(v.now - v.shown, 0)) AS came
      FROM value AS v
     GROUP BY v.person
)
SELECT coalesce(sum(p.shown - p.gone + least(p.gone, p.came)), 0)::bigint,
       coalesce(sum(p.gone - least(p.gone, p.came)), 0)::bigint,
       (SELECT count(*)
          FROM pg_temp.history_before AS b
         WHERE b.person IN (SELECT d.person FROM {departed} AS d)
           AND b.person NOT IN (SELECT s.person FROM pg_temp.history_source AS s)),
       coalesce(sum(least(p.gone, p.came)), 0)::bigint,
       coalesce(sum(p.came - least(p.gone, p.came)), 0)::bigint,
       (SELECT count(*)
          FROM pg_temp.history_source AS s
         WHERE s.person NOT IN (SELECT e.person FROM pg_temp.history_entries AS e))
  FROM person AS p

-- name: departed
-- Whom the next release does not show any more: all of some parts of classes, of others those who left,
-- and who goes with them.
CREATE TEMPORARY TABLE history_departed ON COMMIT DROP AS
SELECT m.person, m.class, m.value_id, t.part, m.is_gone
  FROM pg_temp.history_touched AS t
  JOIN pg_temp.history_members AS m ON m.class = t.class
  JOIN pg_temp.history_cells AS c ON c.person = m.person AND c.cell = t.cell
 WHERE t.part = ANY (%(whole)s)
    OR (t.part = ANY (%(left)s) AND (m.is_gone OR m.person = ANY (%(companions)s::uuid[])))

-- name: departed_of_members
-- Whom the next release of a table of a dataset does not show any more: whose persons are not. Their
-- classes go as a whole.
CREATE TEMPORARY TABLE {departed} ON COMMIT DROP AS
SELECT b.person, b.class, b.value_id
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT p.person FROM {persons} AS p)

-- name: differing
-- Who of those that were read or are published now is not both, or with other values. Everybody else
-- stays as he is, and is not written down.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT person, s.place, s.value_id, b.class, b.value_id AS shown_id
  FROM pg_temp.history_source AS s
  FULL JOIN pg_temp.history_before AS b USING (person)
 WHERE s.place IS NULL
    OR b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id

-- name: differing_persons
-- Of persons who may have several rows, who is published and was not read, and the rows of those who were
-- read and are not published. What others have got or lost meanwhile is not shown, and no difference.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT b.person, NULL::integer AS place, NULL::bigint AS value_id, b.class, b.value_id AS shown_id
  FROM pg_temp.history_before AS b
 WHERE b.place = 1
   AND NOT EXISTS (SELECT FROM pg_temp.history_source AS s WHERE s.person = b.person)
 UNION ALL
SELECT s.person, s.place, s.value_id, NULL, NULL
  FROM pg_temp.history_source AS s
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_before AS b WHERE b.person = s.person)

-- name: discard_leavers
-- Discard what has changed of who is gone of a relation, and what it shows no more.
DELETE FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s
   AND NOT EXISTS (SELECT
                     FROM (SELECT m.missed_at, array_agg(m.person ORDER BY m.person) AS persons
                             FROM pg_temp.history_missed AS m
                            WHERE NOT EXISTS (SELECT
                                                FROM pg_temp.history_departed AS d
                                               WHERE d.person = m.person)
                            GROUP BY m.missed_at) AS n
                    WHERE n.missed_at = l.missed_at
                      AND n.persons = l.persons)

-- name: find_leavers
-- Since when those are gone whom a relation shows: since the first refresh that missed them. A moment
-- that is yet to come was told by a clock that has been set back.
CREATE TEMPORARY TABLE history_missed ON COMMIT DROP AS
SELECT s.person,
       least(coalesce(min(m.missed_at), now()), now()) AS missed_at,
       coalesce(min(m.missed_at) < now() - %(deadline)s::interval, false) AS is_overdue
  FROM pg_temp.history_standing AS s
  LEFT JOIN (SELECT l.missed_at, u.person
               FROM dbanon.history_leaver AS l
              CROSS JOIN LATERAL unnest(l.persons) AS u (person)
              WHERE l.relation_schema = %(schema)s
                AND l.relation_name = %(name)s) AS m ON m.person = s.person
 WHERE s.place IS NULL
 GROUP BY s.person

-- name: forget_leavers
-- Forget since when those are gone whom a relation shows.
DELETE FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s

-- name: fresh
-- The places of those who were never published.
WITH absent AS MATERIALIZED (
    SELECT s.person, s.place
      FROM pg_temp.history_standing AS s
     WHERE s.class IS NULL
),
known AS MATERIALIZED (
    SELECT a.person
      FROM absent AS a
      JOIN pg_temp.history_entries AS e ON e.person = a.person
)
SELECT a.place
  FROM absent AS a
 WHERE a.person NOT IN (SELECT k.person FROM known AS k)
 ORDER BY a.place

-- name: has_departed
-- Whether the next release shows somebody no more.
SELECT EXISTS (SELECT FROM pg_temp.history_departed AS d)

-- name: keep_leavers
-- Keep since when those are gone whom a relation shows on, in an order that tells nothing of the source's.
INSERT INTO dbanon.history_leaver (relation_schema, relation_name, missed_at, persons)
SELECT %(schema)s, %(name)s, m.missed_at, array_agg(m.person ORDER BY m.person)
  FROM pg_temp.history_missed AS m
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = m.person)
 GROUP BY m.missed_at
    ON CONFLICT DO NOTHING

-- name: left_behind
-- The places of those who stay of parts that go, by part, if they have the values that were published.
SELECT d.part, s.place
  FROM pg_temp.history_departed AS d
  JOIN pg_temp.history_source AS s ON s.person = d.person
 WHERE d.part = ANY (%(parts)s)
   AND s.value_id = d.value_id
 ORDER BY s.place

-- name: members
-- The members of the classes that somebody has left, with all of their rows.
CREATE TEMPORARY TABLE history_members ON COMMIT DROP AS
SELECT b.person, b.place, b.class, b.value_id, g.person IS NOT NULL AS is_gone
  FROM pg_temp.history_before AS b
  LEFT JOIN (SELECT s.person
               FROM pg_temp.history_standing AS s
              WHERE s.place IS NULL) AS g ON g.person = b.person
 WHERE b.class IN (SELECT s.class
                     FROM pg_temp.history_standing AS s
                    WHERE s.place IS NULL)

-- name: newcomers
-- How many persons a release shows who were never published.
WITH newest AS MATERIALIZED (
    SELECT DISTINCT e.person
      FROM pg_temp.history_entries AS e
     WHERE e.release_id = %(release)s
       AND e.class <> 0
),
known AS MATERIALIZED (
    SELECT DISTINCT n.person
      FROM newest AS n
      JOIN pg_temp.history_entries AS e ON e.person = n.person
     WHERE e.release_id <> %(release)s
)
SELECT (SELECT count(*) FROM newest) - (SELECT count(*) FROM known)

-- name: parts
-- The parts of classes that somebody has left.
SELECT t.part, t.class, t.gone, t.persons, t.gone_are_safe, t.others_are_safe, t.is_overdue
  FROM pg_temp.history_touched AS t
 ORDER BY t.part

-- name: touched
-- The parts of the classes that somebody has left, each of one cell of all releases: how many left it, of
-- how many, whether those who did, and those who did not, are a valid class themselves, and whether
-- somebody has been gone for too long.
CREATE TEMPORARY TABLE history_touched ON COMMIT DROP AS
WITH member AS (
    SELECT m.class, c.cell, m.value_id, m.is_gone, coalesce(g.is_overdue, false) AS is_overdue
      FROM pg_temp.history_members AS m
      JOIN pg_temp.history_cells AS c ON c.person = m.person
      LEFT JOIN pg_temp.history_missed AS g ON g.person = m.person
     WHERE m.place = 1
),
varied AS (
    SELECT g.class, g.cell, g.is_gone, bool_and(g.different >= g.required) AS is_diverse
      FROM (SELECT m.class, m.cell, m.is_gone, q.name, q.required,
                   count(DISTINCT v.value -> q.name) AS different
              FROM member AS m
              JOIN dbanon.history_value AS v ON v.value_id = m.value_id
             CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
             GROUP BY m.class, m.cell, m.is_gone, q.name, q.required) AS g
     GROUP BY g.class, g.cell, g.is_gone
),
counted AS (
    SELECT m.class, m.cell, m.is_gone, count(*) AS persons, bool_or(m.is_overdue) AS is_overdue,
           count(*) >= %(k)s AND coalesce(bool_and(v.is_diverse), true) AS is_safe
      FROM member AS m
      LEFT JOIN varied AS v ON (v.class, v.cell, v.is_gone) = (m.class, m.cell, m.is_gone)
     GROUP BY m.class, m.cell, m.is_gone
)
SELECT row_number() OVER (ORDER BY c.class, c.cell) AS part, c.class, c.cell,
       coalesce(sum(c.persons) FILTER (WHERE c.is_gone), 0)::bigint AS gone,
       sum(c.persons)::bigint AS persons,
       coalesce(bool_or(c.is_safe) FILTER (WHERE c.is_gone), false) AS gone_are_safe,
       coalesce(bool_or(c.is_safe) FILTER (WHERE NOT c.is_gone), false) AS others_are_safe,
       bool_or(c.is_overdue) AS is_overdue
  FROM counted AS c
 GROUP BY c.class, c.cell

-- name: undivided
-- The classes of which some are not to be shown any more, and of which the others are no valid class.
WITH rest AS (
    SELECT m.class, m.value_id
      FROM pg_temp.history_members AS m
     WHERE m.class IN (SELECT d.class FROM pg_temp.history_departed AS d)
       AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = m.person)
)
SELECT r.class
  FROM rest AS r
 GROUP BY r.class
HAVING count(*) < %(k)s
 UNION
SELECT r.class
  FROM rest AS r
  JOIN dbanon.history_value AS v ON v.value_id = r.value_id
 CROSS JOIN unnest(%(columns)s::text[], %(required)s::bigint[]) AS q (name, required)
 GROUP BY r.class, q.name, q.required
HAVING count(DISTINCT v.value -> q.name) < q.required

-- name: withdrawn
-- The classes of which the next release shows nobody.
SELECT m.class
  FROM pg_temp.history_members AS m
  LEFT JOIN pg_temp.history_departed AS d ON d.person = m.person
 GROUP BY m.class
HAVING bool_and(d.person IS NOT NULL)
 ORDER BY m.class

-- name: withdrawn_of_members
-- The classes of a table of a dataset that go with their persons.
SELECT DISTINCT d.class
  FROM {departed} AS d
 ORDER BY d.class
