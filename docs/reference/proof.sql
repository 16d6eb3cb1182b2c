-- Count k and distinct l of a relation, in plain SQL. It needs SELECT on the relation, and nothing of dbanon.
-- Put in the relation, its quasi-identifiers (GROUP BY), and a sensitive column in place of chapter (twice).
-- NULL counts as a value. The result is what dbanon check prints as achieved.
WITH class AS (
    SELECT count(*) AS n_rows,
           count(DISTINCT chapter) + max(CASE WHEN chapter IS NULL THEN 1 ELSE 0 END) AS n_values
      FROM anon.patients
     GROUP BY age, sex, sample_yr, creatinine
)
SELECT min(n_rows) AS k,
       min(n_values) AS l,
       count(*) AS classes,
       sum(n_rows) AS rows
  FROM class;
