-- The releases of a table whose persons were told by the same columns and remembered by the same key.
SELECT h.release_id, h.relation_schema, h.relation_name, h.several
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
   AND h.person = %(person)s
   AND h.key_id = %(key)s
   AND EXISTS (SELECT FROM dbanon.history_member AS m WHERE m.release_id = h.release_id)
 ORDER BY h.release_id
