-- The atoms of a series: sets of persons that were always published in the same classes.

-- name: columns
-- The columns of which values of single rows were published of a table.
SELECT DISTINCT j.key
  FROM dbanon.history_value AS v
 CROSS JOIN LATERAL jsonb_object_keys(v.value) AS j (key)
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s

-- name: create_frozen
-- The values that some rows were published with, as texts.
CREATE TEMPORARY TABLE {frozen} ON COMMIT DROP AS
SELECT {columns}
  FROM {stage} AS s
  WITH NO DATA

-- name: elsewhere
-- The persons that only other relations published: position, atom (all persons that were always in the same classes),
-- the values of every release that changed them, the latest first, and the first release. Atoms with a deleted person
-- are left out.
WITH value AS (
    SELECT s.person, min(s.release_id) AS born,
           string_agg(s.value_ids, ';' ORDER BY s.release_id DESC) AS value_ids
      FROM (SELECT e.person, e.relation, e.release_id,
                   string_agg(e.value_id::text, ',' ORDER BY e.class, e.value_id) AS value_ids
              FROM pg_temp.history_of_late AS e
             WHERE e.class <> 0
             GROUP BY e.person, e.relation, e.release_id) AS s
     GROUP BY s.person
),
member AS (
    SELECT c.cell, s.place, v.value_ids, v.born
      FROM pg_temp.history_late AS l
      JOIN pg_temp.history_late_cells AS c ON c.person = l.person
      JOIN value AS v ON v.person = l.person
      LEFT JOIN pg_temp.history_source AS s ON s.person = l.person
)
SELECT m.place, dense_rank() OVER (ORDER BY m.cell) - 1, m.value_ids, m.born
  FROM member AS m
 WHERE m.cell IN (SELECT w.cell
                    FROM member AS w
                   GROUP BY w.cell
                  HAVING bool_and(w.place IS NOT NULL))
 ORDER BY m.place

-- name: freeze_stage
-- Publish some rows with the values of before.
UPDATE {stage} AS s
   SET {values}
  FROM {frozen} AS r
 WHERE {join}

-- name: late
-- The persons that only other relations published.
CREATE TEMPORARY TABLE history_late ON COMMIT DROP AS
SELECT e.person
  FROM pg_temp.history_entries AS e
 GROUP BY e.person
HAVING bool_and(e.relation <> %(relation)s)

-- name: placed
-- The persons that were read and were published before: the cell, its size, and the values of every release that
-- changed them, by relation, the latest first.
SELECT h.place, c.atom, c.members, e.value_ids
  FROM pg_temp.history_places AS h
  JOIN (SELECT s.person, dense_rank() OVER (ORDER BY s.cell) - 1 AS atom,
               count(*) OVER (PARTITION BY s.cell) AS members
          FROM pg_temp.history_cells AS s) AS c ON c.person = h.person
  JOIN (SELECT s.person,
               string_agg(s.value_ids, ';'
                          ORDER BY s.relation IS NOT DISTINCT FROM %(first)s::bigint DESC,
                                   s.release_id DESC) AS value_ids
          FROM (SELECT r.person, r.relation, r.release_id,
                       string_agg(r.value_id::text, ',' ORDER BY r.class, r.value_id) AS value_ids
                  FROM pg_temp.history_entries AS r
                 WHERE r.class <> 0
                 GROUP BY r.person, r.relation, r.release_id) AS s
         GROUP BY s.person) AS e ON e.person = h.person
 ORDER BY h.place

-- name: places
-- The persons that were read, by keyed hash.
CREATE TEMPORARY TABLE history_places ON COMMIT DROP AS
SELECT l.place, {person} AS person
  FROM {read} AS l
  JOIN dbanon.history_key AS k ON k.key_id = {key}

-- name: published
-- Of how many persons each value of a column was ever published.
SELECT j.key, count(DISTINCT e.person)
  FROM pg_temp.history_entries AS e
  JOIN dbanon.history_value AS v ON v.value_id = e.value_id
 CROSS JOIN LATERAL jsonb_each(v.value) AS j (key, value)
 WHERE e.class <> 0
 GROUP BY j.key, j.value

-- name: values
-- The sensitive values of each number.
SELECT v.value_id, v.value::text
  FROM dbanon.history_value AS v
 WHERE v.table_schema = %(schema)s
   AND v.table_name = %(name)s
