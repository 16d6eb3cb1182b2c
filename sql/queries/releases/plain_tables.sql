-- Whether all of the tables have their keys, but for one that needs none, and nothing that changes what
-- is written or read.
SELECT count(*) = cardinality(%(tables)s::text[])
   AND bool_and((c.relhasindex OR t.name = %(unkeyed)s)
                AND NOT c.relhasrules
                AND NOT c.relhastriggers
                AND NOT c.relrowsecurity
                AND NOT c.relhassubclass
                AND NOT c.relispartition)
  FROM unnest(%(tables)s::text[]) AS t (name)
  JOIN pg_class AS c ON c.oid = to_regclass(t.name)
 WHERE c.relkind = 'r'
   AND c.relowner = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user)
