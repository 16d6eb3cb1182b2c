-- Views over release data of which the ledger says nothing: what they show is not checked any more.
SELECT DISTINCT n.nspname::text, v.relname::text
  FROM pg_depend AS d
  JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
  JOIN pg_class AS v ON v.oid = r.ev_class
  JOIN pg_namespace AS n ON n.oid = v.relnamespace
  JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
 WHERE c.relnamespace = to_regnamespace('dbanon_data')
   AND v.relnamespace <> c.relnamespace
   AND NOT substring(c.relname FROM '[0-9]+$')::numeric = ANY (%s::numeric[])
 ORDER BY 1, 2
