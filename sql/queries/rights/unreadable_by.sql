-- Those of the roles that still cannot read a relation, for want of a right on it or its schema.
SELECT r.name
  FROM unnest(%(roles)s::text[]) AS r (name)
  JOIN pg_class AS c ON c.oid = %(published)s
 WHERE NOT has_table_privilege(r.name::name, c.oid, 'SELECT')
    OR NOT has_schema_privilege(r.name::name, c.relnamespace, 'USAGE')
 ORDER BY r.name
