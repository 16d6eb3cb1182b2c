-- Views outside over release data, each with the number of the data.
SELECT DISTINCT n.nspname::text, v.relname::text, substring(c.relname FROM '[0-9]+$')::bigint
  FROM pg_depend AS d
  JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
  JOIN pg_class AS v ON v.oid = r.ev_class
  JOIN pg_namespace AS n ON n.oid = v.relnamespace
  JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
 WHERE c.relnamespace = to_regnamespace('dbanon_data')
   AND v.relnamespace <> c.relnamespace
   AND c.relname ~ '^[a-z]+_[0-9]{1,18}$'
   AND c.relname !~ '^retired_'
 ORDER BY 1, 2, 3
