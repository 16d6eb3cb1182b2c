-- The former rows of those who may have changed: who is gone or has new rows.
CREATE TEMPORARY TABLE history_former ON COMMIT DROP AS
SELECT b.person, b.class, b.value_id
  FROM pg_temp.history_before AS b
 WHERE b.person IN (SELECT g.person FROM pg_temp.history_departed AS g
                     UNION ALL
                    SELECT n.person FROM pg_temp.history_present AS n)
