-- Hashes of persons, and samples of rows.

-- name: count_values
-- The distinct values of a column, and how many of the rows that are published have each.
SELECT count(*)::int8, v.value
  FROM (SELECT {value} AS value FROM {source} WHERE {selected}) AS v
 GROUP BY v.value

-- name: hashed
-- Persons who were read, by keyed hash, each in the place that the program knows; only within publishing.
CREATE TEMPORARY TABLE {hashed} ON COMMIT DROP AS
SELECT l.place, {person} AS person
  FROM {read} AS l
 CROSS JOIN dbanon.history_key AS k
 WHERE k.key_id = {key}

-- name: is_drawn
-- Whether a row is one of the sample, which its key decides, wherever it lies in the table.
({hash} & {mask}) < {most}

-- name: person_hash
-- The keyed hash by which a person is remembered.
encode(substr(sha256(k.outer_key || sha256(k.inner_key || convert_to(
    json_build_array({person})::text, 'UTF8'))), 1, 16), 'hex')::uuid
