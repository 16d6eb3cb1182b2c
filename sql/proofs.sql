-- Proofs of releases by their private membership.

-- name: cell_members
-- The persons of one table of a dataset, with the published class of each, and their number of rows if it counts.
SELECT {person} AS person, pg_catalog.concat_ws(':', {part}, g.class, {times}) AS class
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {classes} AS g ON g.group_id = r.group_id
 GROUP BY {person}, g.class

-- name: classes
-- The number of each group's class: groups with the same published values are one class. Numbers are grouped faster
-- than these values.
(SELECT c.group_id, dense_rank() OVER (ORDER BY {columns}) AS class
   FROM {groups} AS c)

-- name: create_cells
-- The cell of each person of a dataset: persons of one cell have the same classes in all tables.
CREATE TABLE {cells} AS
SELECT p.person, dense_rank() OVER (ORDER BY p.classes) AS cell
  FROM (SELECT m.person, array_agg(m.class ORDER BY m.class) AS classes
          FROM ({members}) AS m
         GROUP BY m.person) AS p

-- name: create_persons
-- The persons of a release with their classes and values, for proofs by person.
CREATE TABLE {persons} AS
SELECT DISTINCT p.*
  FROM {rows} AS p

-- name: means_outside
-- Count the classes with a mean or midpoint outside of their values by more than rounding, by column.
SELECT {outside}
  FROM (SELECT r.group_id, {ends}
          FROM {source} AS s
          JOIN {rows} AS r ON {join}
         GROUP BY r.group_id) AS c
  JOIN {groups} AS g ON g.group_id = c.group_id

-- name: persons
-- The rows of a release with person, class and values, beside another table that may divide the persons of a class.
(SELECT g.class AS {class}, {columns}, s.{subject}
   FROM {source} AS s
   JOIN {rows} AS r ON {join}
   JOIN {classes} AS g ON g.group_id = r.group_id{beside})

-- name: prove_cells
-- Count the persons with the same classes in all tables of a dataset.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.persons), 0)::bigint
  FROM (SELECT count(*) AS persons
          FROM {cells}
         GROUP BY cell) AS c

-- name: prove_keys
-- Test if each key identifies one row, by the key's own equality, and has no NULL.
SELECT NOT EXISTS (SELECT
                     FROM {rows} AS r
                    GROUP BY {keys}
                   HAVING count(*) > 1
                       OR num_nulls({keys}) > 0)

-- name: prove_occurrences
-- Count the persons per published class with equal numbers of rows, without persons that span several classes.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.members), 0)::bigint
  FROM (SELECT count(*) FILTER (WHERE p.members = p.owned) AS persons, sum(p.members) AS members
          FROM (SELECT g.class, count(*) AS members, sum(count(*)) OVER (PARTITION BY s.{subject}) AS owned
                  FROM {source} AS s
                  JOIN {rows} AS r ON {join}
                  JOIN {classes} AS g ON g.group_id = r.group_id
                 GROUP BY g.class, s.{subject}) AS p
         GROUP BY p.class, p.members) AS c

-- name: prove_persons
-- Check the published classes by the number of persons per value, and by the rest without a value.
WITH pairs AS (
    SELECT DISTINCT {class} AS class, {value} AS v, {subject} AS p
      FROM {persons} AS p
),
held AS (
    SELECT class, v, p, count(*) OVER (PARTITION BY class, v) AS holders
      FROM pairs
),
owners AS (
    SELECT class, count(*) AS persons, max(sole) AS sole
      FROM (SELECT class, p, count(*) FILTER (WHERE holders = 1) AS sole
              FROM held
             GROUP BY class, p) AS owned
     GROUP BY class
),
valued AS (
    SELECT class, max(holders) AS most, count(*) AS different
      FROM (SELECT class, v, max(holders) AS holders FROM held GROUP BY class, v) AS c
     GROUP BY class
),
each_class AS (
    SELECT o.class, o.persons, {achieved} AS achieved
      FROM owners AS o
      JOIN valued AS x ON x.class = o.class
)
SELECT {run}{required}::double precision, min(e.achieved), max(e.achieved), count(*),
       count(*) FILTER (WHERE e.achieved < {required} - 1e-9),
       count(*) FILTER (WHERE e.achieved > {required} + 1e-9),
       coalesce(sum(e.persons), 0)::bigint
  FROM each_class AS e{by_run}

-- name: prove_subjects
-- Count the persons of every published class, which requires the private tables.
SELECT {k}, min(c.persons), count(*), count(*) FILTER (WHERE c.persons < {k}), coalesce(sum(c.members), 0)::bigint
  FROM (SELECT count(p.subject) AS persons, sum(p.members) AS members
          FROM (SELECT g.class, s.{subject} AS subject, count(*) AS members
                  FROM {source} AS s
                  JOIN {rows} AS r ON {join}
                  JOIN {classes} AS g ON g.group_id = r.group_id
                 GROUP BY g.class, s.{subject}) AS p
         GROUP BY p.class) AS c

-- name: sorted_by_keys
-- The rows of a relation sorted by integer keys, which finds duplicates faster than hashing.
(SELECT o.*
   FROM {rows} AS o
  ORDER BY {keys})
