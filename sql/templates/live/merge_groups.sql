-- Drop the groups that publish like an earlier one, whose rows are in that one.
DELETE FROM {groups} AS d
 USING (SELECT g.group_id, min(g.group_id) OVER (PARTITION BY {columns}) AS class
          FROM {groups} AS g) AS a
 WHERE a.group_id = d.group_id
   AND a.class < a.group_id
