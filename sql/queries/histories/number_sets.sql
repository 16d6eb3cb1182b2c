-- Give a number to each set of classes, and to all values, that a person of several rows has in a
-- release. How many rows are in a class is not part of it: no reader sees whose they are.
CREATE TEMPORARY TABLE history_numbered ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until,
       CASE WHEN e.class = 0 THEN 0 ELSE dense_rank() OVER (ORDER BY s.classes) END AS shown,
       CASE WHEN e.class = 0 THEN 0 ELSE dense_rank() OVER (ORDER BY s.value_ids) END AS held,
       row_number() OVER (PARTITION BY e.release_id, e.person ORDER BY e.class, e.value_id) AS place
  FROM pg_temp.history_entries AS e
  JOIN (SELECT r.release_id, r.person,
               array_agg(DISTINCT r.class ORDER BY r.class) AS classes,
               array_agg(r.value_id ORDER BY r.class, r.value_id) AS value_ids
          FROM pg_temp.history_entries AS r
         GROUP BY r.release_id, r.person) AS s
    ON s.release_id = e.release_id
   AND s.person = e.person
