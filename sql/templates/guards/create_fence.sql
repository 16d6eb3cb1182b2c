-- Keep the source out of hierarchies: what is done through a parent fires no guard. PostgreSQL gives
-- no parent to a table with a trigger of this kind, which itself never runs.
CREATE TRIGGER {trigger}
 AFTER DELETE ON {source}
REFERENCING OLD TABLE AS removed
  FOR EACH ROW
  WHEN (false)
EXECUTE FUNCTION {guard}()
