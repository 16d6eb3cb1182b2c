-- How many rows of a table of a dataset stay as they are published and are in the source, with these
-- values or with others; how many stay that are not in the source any more; how many go whose persons
-- are gone; of how many the values are others by now; how many came to persons whose rows stay; and how
-- many are of persons of whom none were published.
WITH stays AS (
    SELECT b.person, b.value_ids AS shown_ids, coalesce(s.value_ids, ARRAY[]::bigint[]) AS value_ids
      FROM pg_temp.history_before AS b
      LEFT JOIN pg_temp.history_standing AS s ON s.person = b.person
     WHERE b.person NOT IN (SELECT d.person FROM {departed} AS d)
),
value AS (
    SELECT u.person, u.value_id, sum(u.shown) AS shown, sum(u.now) AS now
      FROM (SELECT y.person, i.value_id, 1 AS shown, 0 AS now
              FROM stays AS y
             CROSS JOIN LATERAL unnest(y.shown_ids) AS i (value_id)
             UNION ALL
            SELECT y.person, i.value_id, 0, 1
              FROM stays AS y
             CROSS JOIN LATERAL unnest(y.value_ids) AS i (value_id)) AS u
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
         CROSS JOIN LATERAL unnest(b.value_ids) AS i (value_id)
         WHERE b.person IN (SELECT d.person FROM {departed} AS d)
           AND b.person NOT IN (SELECT s.person FROM pg_temp.history_standing AS s)),
       coalesce(sum(least(p.gone, p.came)), 0)::bigint,
       coalesce(sum(p.came - least(p.gone, p.came)), 0)::bigint,
       (SELECT coalesce(sum(cardinality(s.places)), 0)::bigint
          FROM pg_temp.history_standing AS s
         WHERE NOT s.is_known)
  FROM person AS p
