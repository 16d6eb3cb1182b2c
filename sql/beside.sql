-- Relations beside a release: buckets, counts and labels.

-- name: create_buckets
-- How many persons of each bucket have each sensitive value, in an order that tells nothing of the source's.
CREATE TABLE {buckets} AS
SELECT g.q1 AS bucket, {value} AS {sensitive}, count(*) AS count
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 GROUP BY 1, 2
 ORDER BY gen_random_uuid()

-- name: create_counts
-- About how many persons have each combination of values.
CREATE TABLE {counts} ({columns}, persons bigint NOT NULL)

-- name: create_labels
-- What readers may know of labels: those that are published, and what is above them.
CREATE TABLE {labels} (
    column_name text NOT NULL,
    label text NOT NULL,
    parent text,
    level integer NOT NULL,
    values_below integer NOT NULL
)

-- name: values
-- The sensitive value of each row that is published.
SELECT {value} AS {sensitive}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}

-- name: values_of_buckets
-- The sensitive values of all buckets, each as often as it is counted.
(SELECT b.{sensitive}
   FROM {buckets} AS b
  CROSS JOIN generate_series(1, b.count))

