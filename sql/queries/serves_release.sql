-- Whether a view reads the private tables of a release.
SELECT EXISTS (SELECT
                 FROM pg_rewrite AS w
                 JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                 JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
                 JOIN pg_namespace AS n ON n.oid = c.relnamespace
                WHERE w.ev_class = %(view)s
                  AND n.nspname = 'dbanon_data'
                  AND c.relname = ANY (%(tables)s))
