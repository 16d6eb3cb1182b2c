-- Take the classes away, less those that an open transaction is writing: nobody waits for it.
DELETE FROM {groups} AS g
 USING (SELECT d.group_id FROM {groups} AS d FOR UPDATE SKIP LOCKED) AS f
 WHERE f.group_id = g.group_id
