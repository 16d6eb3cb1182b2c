-- Those of the roles that can still read a relation or one of its columns.
SELECT r.name
  FROM unnest(%(roles)s::text[]) AS r (name)
 WHERE has_any_column_privilege(r.name::name, %(published)s::oid, 'SELECT')
 ORDER BY r.name
