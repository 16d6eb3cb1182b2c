-- Event triggers that run at a change of definitions, each with its function.
SELECT e.evtname::text, n.nspname::text, p.proname::text
  FROM pg_event_trigger AS e
  JOIN pg_proc AS p ON p.oid = e.evtfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE e.evtenabled <> 'D'
   AND e.evtevent <> 'login'
 ORDER BY e.evtname
