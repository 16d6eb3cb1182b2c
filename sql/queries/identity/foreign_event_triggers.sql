-- Event triggers whose function a role owns that is no authority here: it runs at each change of
-- definitions with the rights of whoever makes it, and its owner may replace it at any time.
SELECT e.evtname::text, n.nspname::text, p.proname::text, r.rolname::text
  FROM pg_event_trigger AS e
  JOIN pg_proc AS p ON p.oid = e.evtfoid
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  JOIN pg_roles AS r ON r.oid = p.proowner
 WHERE e.evtenabled <> 'D'
   AND NOT r.rolsuper
   AND r.rolname NOT IN (current_user, session_user)
   AND r.oid <> (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
 ORDER BY e.evtname
