-- How many persons a release shows that a former one does not, and how many only the former one shows.
WITH new AS (SELECT DISTINCT r.person FROM ({new}) AS r),
     former AS (SELECT DISTINCT r.person FROM ({former}) AS r)
SELECT (SELECT count(*) FROM (SELECT n.person FROM new AS n EXCEPT SELECT f.person FROM former AS f) AS c),
       (SELECT count(*) FROM (SELECT f.person FROM former AS f EXCEPT SELECT n.person FROM new AS n) AS l)
