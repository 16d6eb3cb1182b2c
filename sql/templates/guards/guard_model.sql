-- Hide what fails one more model, by the arithmetic of its check.
WITH cells AS (
    SELECT v.group_id::bigint << 32 | {part} AS class,
           row_number() OVER () AS value,
           {label} AS label,
           {number} AS number,
           v.members
      FROM (SELECT s.group_id, {others}s.{column} AS s, count(*) AS members
              FROM ({members}) AS s
             WHERE s.group_id = ANY (touched)
             GROUP BY s.group_id, {others}s.{column}) AS v
),
classes AS (
    SELECT class, sum(members) AS members, count(*) AS distinct_values
      FROM cells
     GROUP BY class
),
{arithmetic}
UPDATE {groups} AS g
   SET shown = false
  FROM each_class AS e
 WHERE g.group_id = e.class >> 32
   AND {fails};
