-- Write down what is remembered of some releases. shown, held: what tells the classes and the values of
-- all rows of the person; place: which row of the person it is.
CREATE TEMPORARY TABLE history_entries ON COMMIT DROP AS
SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until,
       e.class AS shown, e.value_id::bigint AS held, 1::bigint AS place
  FROM ({entries}) AS e
