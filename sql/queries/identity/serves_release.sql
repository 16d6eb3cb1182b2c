-- Whether a view reads the private tables of a release, and belongs to whom they belong. Only who may
-- act as their owner can read them for others, but a view of anybody's can name them.
SELECT EXISTS (SELECT
                 FROM pg_class AS v
                 JOIN pg_rewrite AS w ON w.ev_class = v.oid
                 JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                 JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
                 JOIN pg_namespace AS n ON n.oid = c.relnamespace
                 JOIN pg_roles AS r ON r.oid = v.relowner
                WHERE v.oid = %(view)s
                  AND v.relkind = 'v'
                  AND (v.relowner = c.relowner OR r.rolsuper)
                  AND n.nspname = 'dbanon_data'
                  AND c.relname ~ %(tables)s)
