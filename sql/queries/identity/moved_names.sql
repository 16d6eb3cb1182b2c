-- Names that mean another relation by now. to_regclass looks at what is, not at the transaction's
-- snapshot, but in a session that was told of all changes: opening a relation by name tells it.
SELECT a.name
  FROM unnest(%(oids)s::oid[], %(names)s::text[]) AS a (relation, name)
  LEFT JOIN pg_class AS c ON c.oid = a.relation
 WHERE to_regclass(a.name) IS DISTINCT FROM a.relation
    OR c.oid IS NULL
