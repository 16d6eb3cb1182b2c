-- What is remembered of persons by those releases alone that ask at least some k: an entry is that of the
-- first of them that it holds of.
CREATE TEMPORARY TABLE history_promised ON COMMIT DROP AS
WITH stay AS (
    SELECT e.person, e.relation, e.release_id, e.class, e.shown, e.held,
           lead(e.release_id) OVER (PARTITION BY e.person, e.relation ORDER BY e.release_id) AS until
      FROM pg_temp.history_entries AS e
     WHERE e.place = 1
),
seen AS (
    SELECT s.person, s.relation, s.release_id, s.class, f.release_id AS first, s.shown, s.held,
           lag(s.shown) OVER past AS shown_before, lag(s.held) OVER past AS held_before
      FROM stay AS s
     CROSS JOIN LATERAL (
           SELECT min(a.release_id) AS release_id
             FROM unnest(%(releases)s::bigint[], %(relations)s::bigint[], %(ks)s::integer[])
                  AS a (release_id, relation, k)
            WHERE a.relation = s.relation
              AND a.release_id >= s.release_id
              AND (a.release_id < s.until OR s.until IS NULL)
              AND a.k >= %(k)s) AS f
     WHERE f.release_id IS NOT NULL
    WINDOW past AS (PARTITION BY s.person, s.relation ORDER BY s.release_id)
)
SELECT s.first AS release_id, e.relation, e.person, e.class, e.value_id, e.shown, e.held, e.place
  FROM seen AS s
  JOIN pg_temp.history_entries AS e
    ON (e.person, e.relation, e.release_id) = (s.person, s.relation, s.release_id)
 WHERE CASE WHEN s.shown_before IS NULL THEN s.class <> 0
            ELSE (s.shown, s.held) IS DISTINCT FROM (s.shown_before, s.held_before) END
