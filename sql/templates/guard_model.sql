-- Hide what fails one more model. The block has the name of the model's check and its parameters as
-- constants, so that the arithmetic of the check runs here as it stands there.
<<{check}>>
DECLARE
    {parameters}
BEGIN
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
{arithmetic}
    UPDATE {groups} AS g
       SET shown = false
      FROM each_class AS e
     WHERE g.group_id = e.class >> 32
       AND {fails};
END;
