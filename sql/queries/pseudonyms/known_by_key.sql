-- The other releases whose persons are known by a key: of which table, told by which columns, whether by
-- pseudonyms, and whether before this publication, of which nothing is in the ledger yet.
SELECT h.table_schema, h.table_name, h.person, r.policy ->> 'pseudonym' IS NOT NULL,
       h.release_id <= (SELECT coalesce(max(l.release_id), 0) FROM dbanon.release AS l)
  FROM dbanon.history AS h
  LEFT JOIN dbanon.release AS r ON r.release_id = h.release_id
 WHERE h.key_id = %(key)s
   AND h.release_id <> %(release)s
