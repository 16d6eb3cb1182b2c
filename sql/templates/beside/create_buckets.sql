-- How many persons of each bucket have each sensitive value, in an order that tells nothing of the source's.
CREATE TABLE {buckets} AS
SELECT g.q1 AS bucket, {value} AS {sensitive}, count(*) AS count
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 GROUP BY 1, 2
 ORDER BY gen_random_uuid()
