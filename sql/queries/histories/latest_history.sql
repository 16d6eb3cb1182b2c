-- How the persons of a relation, else of its table, were remembered last, whether the key is still
-- there, in which series, and whether that was forgotten.
SELECT h.person, h.key_id, EXISTS (SELECT FROM dbanon.history_key AS k WHERE k.key_id = h.key_id),
       h.series, h.forgotten_at IS NOT NULL
  FROM dbanon.history AS h
 WHERE h.table_schema = %(schema)s
   AND h.table_name = %(name)s
 ORDER BY (h.relation_schema = %(view_schema)s::text AND h.relation_name = %(view_name)s::text) IS TRUE DESC,
       h.release_id DESC
 LIMIT 1
