-- How many of those whom a former release shows are in the source.
SELECT count(DISTINCT f.person)
  FROM pg_temp.history_shown AS f
 WHERE f.person IN (SELECT {person}
                      FROM {source} AS s
                     CROSS JOIN dbanon.history_key AS k
                     WHERE k.key_id = {key})
