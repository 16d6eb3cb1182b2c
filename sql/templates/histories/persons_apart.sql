-- How many persons a release shows that each of some former ones does not, and how many only that shows.
WITH new AS MATERIALIZED (SELECT DISTINCT r.person FROM ({new}) AS r)
SELECT r.shown_id, c.*
  FROM {releases}
 CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE f.person IS NULL), count(*) FILTER (WHERE n.person IS NULL)
          FROM new AS n
          FULL JOIN (SELECT DISTINCT s.person FROM ({former}) AS s) AS f ON f.person = n.person) AS c
 ORDER BY r.shown_id
