-- Whether the current role may act as the owner of a relation.
SELECT pg_has_role(relowner, 'USAGE')
  FROM pg_class
 WHERE oid = %s
