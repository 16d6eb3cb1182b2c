-- Whether the person of a row, by the texts that tell who it is, is one of those whom a release shows. These
-- are named where nothing else is, lest a column of the source be taken for one of the key's.
(SELECT {person}
   FROM dbanon.history_key AS k
  CROSS JOIN (SELECT {texts}) AS p
  WHERE k.key_id = {key}) IN (
    WITH remembered AS MATERIALIZED (
        SELECT e.release_id, e.relation, e.person, e.class, e.value_id, e.until,
               e.class AS shown, 1::bigint AS place
          FROM ({entries}) AS e
    )
    SELECT o.person FROM ({shown}) AS o)
