-- Take classes out of a copy.
DELETE FROM ONLY {release} AS s
 USING dbanon.history_key AS k
 WHERE k.key_id = {key}
   AND {class} = ANY ({withdrawn}::bigint[])
