-- Let a group be a class: the rows of groups that publish alike go to the first of them.
UPDATE {rows} AS r
   SET group_id = a.class
  FROM (SELECT g.group_id, min(g.group_id) OVER (PARTITION BY {columns}) AS class
          FROM {groups} AS g) AS a
 WHERE a.group_id = r.group_id
   AND a.class < a.group_id
