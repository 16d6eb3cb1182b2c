-- The rows of a source compared with its release, and deleted persons.

-- name: bound_rows
-- The number of published rows in classes with a deleted person, which a deadline will withdraw.
SELECT coalesce(sum(s.rows), 0)::bigint
  FROM (SELECT b.class, 1 AS rows
          FROM pg_temp.history_before AS b
         WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS d WHERE d.person = b.person)
         UNION ALL
        SELECT r.class, r.persons
          FROM pg_temp.history_rest AS r
         WHERE r.class NOT IN (SELECT d.class FROM pg_temp.history_departed AS d)) AS s
 WHERE s.class IN (SELECT c.class
                     FROM pg_temp.history_missed AS m
                     JOIN pg_temp.history_before AS c ON c.person = m.person)

-- name: count_found
-- The numbers of published rows, of those that were read again, and of those whose row was deleted.
SELECT (SELECT count(*) FROM pg_temp.history_before)
           + (SELECT coalesce(sum(r.persons), 0)::bigint FROM pg_temp.history_rest AS r),
       (SELECT count(*)
          FROM pg_temp.history_source AS s
          JOIN pg_temp.history_before AS b ON b.person = s.person),
       (SELECT count(*) FROM pg_temp.history_standing AS s WHERE s.place IS NULL)

-- name: count_leavers
-- The number of deleted persons that a relation still shows, of those that are overdue, and the first time that one
-- was missed; and the size of the last pool that failed the models as a whole, in any relation of the table, as all
-- have the same new persons.
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
-- The numbers of retained rows, of withheld rows, of rows that stay published although deleted, of deleted rows that
-- are withdrawn, of rows with changed values, and of withdrawn rows that were overdue. fresh: the number of rows that
-- were never published.
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
SELECT (SELECT count(*) FROM pg_temp.history_before)
           + (SELECT coalesce(sum(r.persons), 0)::bigint FROM pg_temp.history_rest AS r) - s.gone - d.others,
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
-- The same for a linked table of a dataset: retained rows that are in the source, with the same or other values;
-- retained rows that are not in the source; withdrawn rows of deleted persons; rows with changed values; new rows of
-- retained persons; and rows of persons that were never published.
WITH value AS (
    SELECT u.person, u.value_id, sum(u.shown) AS shown, sum(u.now) AS now
      FROM (SELECT b.person, b.value_id, 1 AS shown, 0 AS now
              FROM pg_temp.history_before AS b
             UNION ALL
            SELECT s.person, s.value_id, 0, 1
              FROM pg_temp.history_source AS s
             WHERE s.person IN (SELECT b.person FROM pg_temp.history_before AS b)) AS u
     WHERE NOT EXISTS (SELECT FROM {departed} AS d WHERE d.person = u.person)
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
-- The persons that the next release withdraws: all members of classes in which enough persons were deleted, or one is
-- overdue. Only these numbers decide it.
CREATE TEMPORARY TABLE history_departed ON COMMIT DROP AS
WITH touched AS MATERIALIZED (
    SELECT b.class, count(DISTINCT b.person) AS gone,
           bool_or(b.person IN (SELECT m.person FROM pg_temp.history_missed AS m WHERE m.is_overdue)) AS is_overdue
      FROM pg_temp.history_before AS b
     WHERE b.person IN (SELECT m.person FROM pg_temp.history_missed AS m)
     GROUP BY b.class
),
sized AS (
    SELECT s.class, sum(s.persons) AS persons
      FROM (SELECT b.class, count(DISTINCT b.person) AS persons
              FROM pg_temp.history_before AS b
             GROUP BY b.class
             UNION ALL
            SELECT r.class, r.persons
              FROM pg_temp.history_rest AS r) AS s
     WHERE s.class IN (SELECT t.class FROM touched AS t)
     GROUP BY s.class
),
withdrawn AS MATERIALIZED (
    SELECT t.class
      FROM touched AS t
      JOIN sized AS s ON s.class = t.class
     WHERE t.is_overdue
        OR t.gone >= greatest(ceil(%(share)s::numeric * s.persons), s.persons - %(k)s::bigint + 1)
)
SELECT b.person, b.class, b.value_id,
       b.person IN (SELECT m.person FROM pg_temp.history_missed AS m) AS is_gone
  FROM pg_temp.history_before AS b
 WHERE b.class IN (SELECT w.class FROM withdrawn AS w)
 UNION ALL
SELECT f.person, f.class, f.value_id, false
  FROM dbanon.history_member AS m
 CROSS JOIN LATERAL unnest(m.persons, m.classes, m.value_ids) AS f (person, class, value_id)
 WHERE m.release_id = %(first)s
   AND EXISTS (SELECT FROM withdrawn)
   AND EXISTS (SELECT FROM pg_temp.history_rest)
   AND f.class IN (SELECT w.class FROM withdrawn AS w)
   AND f.person NOT IN (SELECT e.person FROM pg_temp.history_entries AS e)

-- name: departed_of_members
-- The rows that the next release of a linked table withdraws: those of withdrawn persons, by whole classes.
CREATE TEMPORARY TABLE {departed} ON COMMIT DROP AS
SELECT b.person, b.class, b.value_id
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT p.person FROM {persons} AS p)

-- name: differing
-- The persons that were read or are published, but not both, or with other values. All others are unchanged, and not
-- listed.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT person, s.place, s.value_id, b.class, b.value_id AS shown_id, NULL::bigint AS state
  FROM pg_temp.history_source AS s
  FULL JOIN pg_temp.history_before AS b USING (person)
 WHERE s.place IS NULL
    OR b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id

-- name: differing_of_changes
-- The same from changed and unpublished rows, from the places of unchanged rows with other values, and from persons
-- whose rows were deleted, now or earlier.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT s.person, s.place, s.value_id, b.class, b.value_id AS shown_id, NULL::bigint AS state
  FROM pg_temp.history_source AS s
  LEFT JOIN pg_temp.history_before AS b ON b.person = s.person
 WHERE b.class IS NULL
    OR s.value_id IS DISTINCT FROM b.value_id
 UNION ALL
SELECT m.person, -1, NULL, coalesce(b.class, 0), b.value_id, m.state
  FROM pg_temp.history_marked AS m
  LEFT JOIN pg_temp.history_before AS b ON b.person = m.person
 WHERE m.state > 0
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
-- The same for persons that may have several rows: published persons that were not read, and the rows of persons that
-- were read and are not published. Rows that other persons gained or lost are not published, and are no difference.
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
-- Delete the stored deleted persons of a relation whose group has changed or is withdrawn.
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
-- The time since when each deleted person of a relation is missed: the first refresh that missed the person. A time
-- in the future is of a clock that was set back since.
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
-- Delete the times of deleted persons of a relation.
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
-- The positions of persons that were never published.
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
-- Store the times of deleted persons that a relation retains, in an order that is independent of the source.
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
                            SELECT m.person FROM pg_temp.history_marked AS m WHERE m.state < 0)
    RETURNING s.person
)
SELECT (SELECT count(*) FROM pg_temp.history_source) - (SELECT count(*) FROM other)

-- name: newcomers
-- The number of persons of a release that were never published before.
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
    SELECT '{{}}'::jsonb, r.value_id, sum(r.persons)::bigint, sum(r.persons)::bigint
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
-- The classes that the next release withdraws.
SELECT DISTINCT d.class
  FROM {departed} AS d
 ORDER BY d.class
