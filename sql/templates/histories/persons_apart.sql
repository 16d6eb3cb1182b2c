-- How many persons a release shows that a former one does not, how many of these a release before it showed,
-- and how many only the former one shows.
WITH new AS (SELECT DISTINCT r.person FROM ({new}) AS r),
     former AS (SELECT DISTINCT r.person FROM ({former}) AS r),
     came AS (SELECT n.person FROM new AS n EXCEPT SELECT f.person FROM former AS f),
     former_only AS (SELECT f.person FROM former AS f EXCEPT SELECT n.person FROM new AS n)
SELECT (SELECT count(*) FROM came),
       (SELECT count(*)
          FROM came AS c
         WHERE EXISTS (SELECT FROM {entries} AS e WHERE e.person = c.person AND e.release_id < {release})),
       (SELECT count(*) FROM former_only)
