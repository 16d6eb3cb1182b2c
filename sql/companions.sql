-- Companion relations of a release: buckets, counts and labels.

-- name: create_buckets
-- The number of persons with each sensitive value per bucket. Rows in the order of their own values tell no other.
-- They are sorted before they are counted, as few buckets have a value twice.
CREATE TABLE {buckets} AS
SELECT b.bucket, b.{sensitive}, count(*) AS count
  FROM (SELECT g.q1 AS bucket, {value} AS {sensitive}
          FROM {source} AS s
          JOIN {rows} AS r ON {join}
          JOIN {groups} AS g ON g.group_id = r.group_id
         ORDER BY 1, 2) AS b
 GROUP BY 1, 2
 ORDER BY 1, 2

-- name: create_counts
-- The noisy number of persons for each combination of values.
CREATE TABLE {counts} ({columns}, persons bigint NOT NULL)

-- name: create_labels
-- The published labels and their ancestors.
CREATE TABLE {labels} (
    column_name text NOT NULL,
    label text NOT NULL,
    parent text,
    level integer NOT NULL,
    values_below integer NOT NULL
)

-- name: values
-- The sensitive value of each published row.
SELECT {value} AS {sensitive}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}

-- name: values_of_buckets
-- The sensitive values of all buckets, each repeated by its count.
(SELECT b.{sensitive}
   FROM {buckets} AS b
  CROSS JOIN generate_series(1, b.count))

