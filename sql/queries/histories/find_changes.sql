-- Find the persons whose rows are not those of the relation's release before. One who is gone has
-- class 0.
CREATE TEMPORARY TABLE history_changes ON COMMIT DROP AS
WITH changed AS (
    SELECT r.person
      FROM (SELECT n.person, n.class, n.value_id, 1 AS rows
              FROM pg_temp.history_present AS n
             UNION ALL
            SELECT b.person, b.class, b.value_id, -1
              FROM pg_temp.history_former AS b) AS r
     GROUP BY r.person, r.class, r.value_id
    HAVING sum(r.rows) <> 0
)
SELECT n.person, n.class, n.value_id
  FROM pg_temp.history_present AS n
 WHERE n.person IN (SELECT c.person FROM changed AS c)
 UNION ALL
SELECT DISTINCT c.person, 0, 0
  FROM changed AS c
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_present AS n WHERE n.person = c.person)
