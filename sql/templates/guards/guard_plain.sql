-- Hide what fails k or distinct l.
UPDATE {groups} AS g
   SET shown = false
 WHERE g.group_id = ANY (touched)
   AND NOT EXISTS (SELECT
                     FROM ({members}) AS s
                    WHERE s.group_id = g.group_id
                   HAVING {holds});
