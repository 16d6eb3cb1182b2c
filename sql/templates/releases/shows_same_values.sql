-- Whether a served copy shows the same values in some columns as a new one will, each as often.
WITH new AS (SELECT ARRAY[{values}]::text[] AS shown, count(*) AS n FROM ({served}) AS s GROUP BY 1),
     former AS (SELECT ARRAY[{values}]::text[] AS shown, count(*) AS n FROM {release} AS s GROUP BY 1)
SELECT NOT EXISTS (TABLE new EXCEPT TABLE former)
       AND NOT EXISTS (TABLE former EXCEPT TABLE new)
