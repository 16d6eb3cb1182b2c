-- Add the rows that a copy still shows of those who have new ones.
INSERT INTO pg_temp.history_present (person, class, value_id)
SELECT f.person, f.class, f.value_id
  FROM pg_temp.history_former AS f
 WHERE NOT EXISTS (SELECT FROM pg_temp.history_departed AS g WHERE g.person = f.person)
