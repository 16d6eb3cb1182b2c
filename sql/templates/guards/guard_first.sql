-- Further rows never break what some rows of a class meet already, so a few are looked at first.
IF EXISTS (SELECT
             FROM unnest(touched) AS t (group_id)
            WHERE NOT EXISTS (SELECT
                                FROM (SELECT m.*
                                        FROM ({members}) AS m
                                       WHERE m.group_id = t.group_id
                                       LIMIT {few}) AS s
                              HAVING {holds})) THEN
{plain}
END IF;
