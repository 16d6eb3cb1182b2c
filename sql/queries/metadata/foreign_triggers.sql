-- Triggers that call functions of the metadata's own triggers for other tables. They were attached
-- while everybody had EXECUTE, or by whom it was granted to. Publishers attach refuse_change.
SELECT t.tgname::text, n.nspname::text, c.relname::text, p.proname::text
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_class AS c ON c.oid = t.tgrelid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE p.pronamespace = to_regnamespace('dbanon')
   AND p.proname <> 'refuse_change'
   AND c.relnamespace <> p.pronamespace
 ORDER BY 2, 3, 1
