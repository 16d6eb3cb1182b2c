-- How the rows of a source stand to what is published of them, and who left.

-- name: bound_rows
-- How many published rows are in classes of which somebody is gone, and which a deadline withdraws.
SELECT count(*)
  FROM (SELECT b.person, b.class
          FROM pg_temp.history_before AS b
         UNION ALL
        SELECT r.person, r.class
          FROM pg_temp.history_rest AS r) AS b
 WHERE b.class IN (SELECT c.class
                     FROM pg_temp.history_missed AS m
                     JOIN pg_temp.history_before AS c ON c.person = m.person)
   AND NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = b.person)

-- name: count_found
-- How many rows are published, how many of them were read again, and how many are gone.
SELECT (SELECT count(*) FROM pg_temp.history_before) + (SELECT count(*) FROM pg_temp.history_rest),
       (SELECT count(*)
          FROM pg_temp.history_source AS s
          JOIN pg_temp.history_before AS b ON b.person = s.person),
       (SELECT count(*) FROM pg_temp.history_standing AS s WHERE s.place IS NULL)

-- name: count_leavers
-- How many are gone whom a relation shows, how many of them for longer than they may be, and since when
-- the first of them are; and the size of the last pool that did not meet the models as a whole, of any
-- relation of the table: its new persons are those of this one, too.
SELECT coalesce(sum(cardinality(l.persons)), 0)::bigint,
       coalesce(sum(cardinality(l.persons))
                FILTER (WHERE l.missed_at < now() - %(deadline)s::interval), 0)::bigint,
       min(l.missed_at),
       (SELECT coalesce(max(p.persons), 0)
          FROM dbanon.history_pool AS p
          JOIN dbanon.release AS r ON (r.relation_schema, r.relation_name) = (p.relation_schema, p.relation_name)
          JOIN dbanon.release AS o ON (o.table_schema, o.table_name) = (r.table_schema, r.table_name)
         WHERE o.relation_schema = %(schema)s
           AND o.relation_name = %(name)s)
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
SELECT (SELECT count(*) FROM pg_temp.history_before) + (SELECT count(*) FROM pg_temp.history_rest)
           - s.gone - d.others,
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
-- Whom the next release does not show any more: everybody in the classes of which so many are gone, or
-- somebody for too long. Nothing but these numbers decides it.
CREATE TEMPORARY TABLE history_departed ON COMMIT DROP AS
WITH touched AS MATERIALIZED (
    SELECT b.class, count(DISTINCT b.person) AS gone,
           bool_or(b.person IN (SELECT m.person FROM pg_temp.history_missed AS m WHERE m.is_overdue)) AS is_overdue
      FROM pg_temp.history_before AS b
     WHERE b.person IN (SELECT m.person FROM pg_temp.history_missed AS m)
     GROUP BY b.class
),
shown AS MATERIALIZED (
    SELECT b.person, b.class, b.value_id
      FROM pg_temp.history_before AS b
     WHERE b.class IN (SELECT t.class FROM touched AS t)
     UNION ALL
    SELECT r.person, r.class, r.value_id
      FROM pg_temp.history_rest AS r
     WHERE r.class IN (SELECT t.class FROM touched AS t)
),
sized AS (
    SELECT s.class, count(DISTINCT s.person) AS persons
      FROM shown AS s
     GROUP BY s.class
)
SELECT b.person, b.class, b.value_id,
       b.person IN (SELECT m.person FROM pg_temp.history_missed AS m) AS is_gone
  FROM shown AS b
 WHERE b.class IN (SELECT t.class
                     FROM touched AS t
                     JOIN sized AS s ON s.class = t.class
                    WHERE t.is_overdue
                       OR t.gone >= greatest(ceil(%(share)s::numeric * s.persons),
                                             s.persons - %(k)s::bigint + 1))

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
SELECT person, s.place, s.value_id, b.class, b.value_id AS shown_id, NULL::bigint AS state
  FROM pg_temp.history_source AS s
  FULL JOIN pg_temp.history_before AS b USING (person)
 WHERE s.place IS NULL
    OR b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id

-- name: differing_of_changes
-- The same from the rows that changed or were not published, the places of unchanged rows with other values, and the
-- persons whose rows went, now or before.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT s.person, s.place, s.value_id, b.class, b.value_id AS shown_id, NULL::bigint AS state
  FROM pg_temp.history_source AS s
  LEFT JOIN pg_temp.history_before AS b ON b.person = s.person
 WHERE b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id
 UNION ALL
SELECT p.person, -1, NULL, coalesce(b.class, 0), b.value_id, p.state
  FROM {places} AS p
  LEFT JOIN pg_temp.history_before AS b ON b.person = p.person
 WHERE p.state > 0
   AND NOT EXISTS (SELECT FROM pg_temp.history_went AS w WHERE w.place = p.ctid)
 UNION ALL
SELECT b.person, NULL, NULL, b.class, b.value_id, NULL
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT w.person FROM pg_temp.history_went AS w
                     UNION ALL
                    SELECT u.person
                      FROM dbanon.history_leaver AS l
                     CROSS JOIN LATERAL unnest(l.persons) AS u (person)
                     WHERE l.relation_schema = {view_schema}
                       AND l.relation_name = {view_name})
   AND b.person NOT IN (SELECT s.person FROM pg_temp.history_source AS s)

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

-- name: failed_pools
-- The kept values and the size of the last pools of a table that did not meet the models as a whole.
SELECT p.kept, max(p.persons)
  FROM dbanon.history_pool AS p
  JOIN dbanon.release AS r ON (r.relation_schema, r.relation_name) = (p.relation_schema, p.relation_name)
 WHERE r.table_schema = %(schema)s
   AND r.table_name = %(name)s
 GROUP BY p.kept

-- name: find_former_values
-- The published rows that have another value by now, by sensitive column.
CREATE TEMPORARY TABLE history_former_values ON COMMIT DROP AS
SELECT s.person, q.name, q.number
  FROM pg_temp.history_standing AS s
 CROSS JOIN unnest({columns}::text[]) WITH ORDINALITY AS q (name, number)
  LEFT JOIN dbanon.history_value AS v ON v.value_id = s.shown_id
  LEFT JOIN pg_temp.history_read AS l ON l.place = s.place
  LEFT JOIN pg_temp.history_codes AS o ON o.code = l.code
 WHERE CASE WHEN s.state IS NULL
            THEN l.place IS NOT NULL AND v.value ? q.name AND o.value -> q.name IS DISTINCT FROM v.value -> q.name
            ELSE s.state & (1::bigint << q.number::integer) <> 0
       END

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

-- name: forget_pools
-- Forget the last pools that did not meet the models as a whole; kept: NULL for all of a relation.
DELETE FROM dbanon.history_pool AS p
 WHERE p.relation_schema = %(schema)s
   AND p.relation_name = %(name)s
   AND p.kept = coalesce(%(kept)s, p.kept)

-- name: former_values
-- How many published rows have another value by now, by sensitive column; rows that are withdrawn do not count.
SELECT f.name, count(*)
  FROM pg_temp.history_former_values AS f
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = f.person)
 GROUP BY f.name

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

-- name: keep_leavers
-- Keep since when those are gone whom a relation shows on, in an order that tells nothing of the source's.
INSERT INTO dbanon.history_leaver (relation_schema, relation_name, missed_at, persons)
SELECT %(schema)s, %(name)s, m.missed_at, array_agg(m.person ORDER BY m.person)
  FROM pg_temp.history_missed AS m
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = m.person)
 GROUP BY m.missed_at
    ON CONFLICT DO NOTHING

-- name: keep_pool
-- Remember that a pool did not meet the models as a whole.
INSERT INTO dbanon.history_pool (relation_schema, relation_name, kept, persons)
VALUES (%(schema)s, %(name)s, %(kept)s, %(persons)s)

-- name: kept_values
-- The kept values of each class of a copy.
SELECT {class} AS class, {kept} AS kept
  FROM (SELECT {quasi}
          FROM ONLY {release} AS s
         GROUP BY {alike}) AS s
  JOIN dbanon.history_key AS k ON k.key_id = {key}

-- name: narrow_source
-- Keep of the rows that were read those that changed or are not published, and count them.
WITH other AS (
    DELETE FROM pg_temp.history_source AS s
     WHERE s.person NOT IN (SELECT c.person FROM pg_temp.history_came AS c
                             UNION ALL
                            SELECT p.person FROM pg_temp.history_pending AS p)
    RETURNING s.person
)
SELECT (SELECT count(*) FROM pg_temp.history_source) - (SELECT count(*) FROM other)

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

-- name: published_values
-- How often each value of some columns is published, by the kept values of the class; and without a column,
-- how many persons are.
WITH value AS MATERIALIZED (
    SELECT {kept} AS kept, b.value_id, {rows} AS rows, count(*) FILTER (WHERE b.place = 1) AS persons
      FROM {members}
     GROUP BY {alike}
     UNION ALL
    SELECT '{{}}'::jsonb, r.value_id, count(*), count(*)
      FROM pg_temp.history_rest AS r
     GROUP BY r.value_id
)
SELECT n.kept::text, q.name, sum(n.rows)::bigint
  FROM value AS n
  JOIN dbanon.history_value AS v ON v.value_id = n.value_id
 CROSS JOIN unnest(%(columns)s::text[]) AS q (name)
 GROUP BY n.kept, q.name, v.value -> q.name
 UNION ALL
SELECT n.kept::text, NULL, sum(n.persons)::bigint
  FROM value AS n
 GROUP BY n.kept

-- name: states
-- The rows of a source that are not as published, as in the table of places.
CREATE TEMPORARY TABLE history_states ON COMMIT DROP AS
SELECT s.person,
       CASE WHEN s.class IS NULL THEN -1 ELSE 1 + coalesce(f.columns, 0) END AS state
  FROM pg_temp.history_standing AS s
  LEFT JOIN (SELECT v.person, sum(1::bigint << least(v.number, 62)::integer)::bigint AS columns
               FROM pg_temp.history_former_values AS v
              GROUP BY v.person) AS f ON f.person = s.person
 WHERE s.place IS NOT NULL

-- name: withdrawn
-- The classes of which the next release shows nobody.
SELECT DISTINCT d.class
  FROM {departed} AS d
 ORDER BY d.class
