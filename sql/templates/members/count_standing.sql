-- How many rows of a table of a dataset stay as they are published and are in the source, with these
-- values or with others; how many stay that are not in the source any more; how many go whose persons
-- are gone; of how many the values are others by now; how many came to persons whose rows stay; and how
-- many are of persons of whom none were published.
WITH value AS (
    SELECT u.person, u.value_id, sum(u.shown) AS shown, sum(u.now) AS now
      FROM (SELECT b.person, b.value_id, 1 AS shown, 0 AS now
              FROM pg_temp.history_before AS b
             UNION ALL
            SELECT s.person, s.value_id, 0, 1
              FROM pg_temp.history_source AS s
             WHERE s.person IN (SELECT b.person FROM pg_temp.history_before AS b)) AS u
     WHERE u.person NOT IN (SELECT d.person FROM {departed} AS d)
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
