-- The sensitive values of all buckets, each as often as it is counted.
(SELECT b.{sensitive}
   FROM {buckets} AS b
  CROSS JOIN generate_series(1, b.count))
