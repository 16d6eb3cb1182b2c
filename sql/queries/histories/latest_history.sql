-- How the persons of a table were remembered last, and whether the key is still there.
SELECT h.person, h.key_id, EXISTS (SELECT FROM dbanon.history_key AS k WHERE k.key_id = h.key_id)
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 ORDER BY h.release_id DESC
 LIMIT 1
