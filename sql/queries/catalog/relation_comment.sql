-- The comment of a relation.
SELECT obj_description(%s, 'pg_class')
