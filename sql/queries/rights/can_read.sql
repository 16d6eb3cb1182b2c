-- Whether the current role may read a relation as a whole.
SELECT has_table_privilege(%s::oid, 'SELECT')
