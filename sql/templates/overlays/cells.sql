-- Put the persons in cells: those of one have been in the same classes of all releases, and the same
-- releases, of whatever relation, showed them with equal values of each column. Who changed once is
-- told by when, and to which classes. Which values are equal is worked out once for all persons who
-- have had the same ones.
CREATE TEMPORARY TABLE {cells} ON COMMIT DROP AS
WITH change AS (
    SELECT e.person, count(*) AS changes, min(e.release_id) AS release_id, min(e.shown) AS shown
      FROM {entries} AS e
     WHERE e.place = 1
     GROUP BY e.person
),
past AS MATERIALIZED (
    SELECT e.person,
           string_agg(e.release_id::text || ':' || e.shown::text, ';' ORDER BY e.release_id) AS classes,
           CASE WHEN min(e.held) FILTER (WHERE e.class <> 0) <> max(e.held)
                THEN array_agg(e.release_id ORDER BY e.release_id) FILTER (WHERE e.class <> 0)
           END AS releases,
           array_agg(e.held ORDER BY e.release_id) FILTER (WHERE e.class <> 0) AS held
      FROM {entries} AS e
     WHERE e.place = 1
       AND e.person IN (SELECT c.person FROM change AS c WHERE c.changes > 1)
     GROUP BY e.person
),
course AS MATERIALIZED (
    SELECT row_number() OVER () AS number, d.releases, d.held
      FROM (SELECT DISTINCT p.releases, p.held
              FROM past AS p
             WHERE p.releases IS NOT NULL) AS d
),
step AS MATERIALIZED (
    SELECT c.number, u.release_id, u.held
      FROM course AS c
     CROSS JOIN LATERAL unnest(c.releases, c.held) AS u (release_id, held)
),
part AS MATERIALIZED (
    SELECT h.held, ROW(v.table_schema, v.table_name, j.key)::text AS name,
           array_agg(j.value::text ORDER BY j.value::text) AS shown
      FROM (SELECT DISTINCT e.held, e.place, e.value_id
              FROM {entries} AS e
             WHERE e.held IN (SELECT s.held FROM step AS s)) AS h
      JOIN dbanon.history_value AS v ON v.value_id = h.value_id
     CROSS JOIN LATERAL jsonb_each(v.value) AS j
     GROUP BY h.held, v.table_schema, v.table_name, j.key
     UNION ALL
    SELECT DISTINCT s.held, '', ARRAY[s.held::text]  -- rows of several columns, taken together
      FROM step AS s
),
pattern AS (
    SELECT f.number, array_agg(f.first ORDER BY f.release_id, f.name)::text AS equals
      FROM (SELECT s.number, s.release_id, p.name,
                   min(s.release_id) OVER (PARTITION BY s.number, p.name, p.shown) AS first
              FROM step AS s
              JOIN part AS p ON p.held = s.held) AS f
     GROUP BY f.number
)
SELECT c.person, int8send(c.release_id) || int8send(c.shown) AS cell
  FROM change AS c
 WHERE c.changes = 1
 UNION ALL
SELECT p.person, sha256(convert_to(p.classes || coalesce(e.equals, ''), 'UTF8')) AS cell
  FROM past AS p
  LEFT JOIN course AS c ON c.releases = p.releases AND c.held = p.held
  LEFT JOIN pattern AS e ON e.number = c.number
