-- Functions that a view calls whenever it is read, and whose results may differ from row to row and
-- from reading to reading. The catalogs record no dependency on PostgreSQL's own, so the stored
-- tree of the query is asked. What a materialized view calls was called when it was filled.
WITH RECURSIVE viewed (oid) AS (
    SELECT c.oid
      FROM pg_class AS c
     WHERE c.oid = %(relation)s
       AND c.relkind = 'v'
    UNION
    SELECT c.oid
      FROM viewed AS v
      JOIN pg_rewrite AS w ON w.ev_class = v.oid AND w.ev_type = '1'
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
      JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
     WHERE c.relkind = 'v'
)
SELECT DISTINCT n.nspname, p.proname
  FROM viewed AS v
  JOIN pg_rewrite AS w ON w.ev_class = v.oid AND w.ev_type = '1'
 CROSS JOIN LATERAL regexp_matches(w.ev_action::text,
                                   ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS f (found)
  JOIN pg_proc AS p ON p.oid = f.found[1]::oid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.provolatile = 'v'
 ORDER BY 1, 2
