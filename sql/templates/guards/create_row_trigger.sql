-- Let the guard see every row that replication changes: what it applies fires no trigger of statements.
CREATE TRIGGER {trigger}
 AFTER {event} ON {source}
   FOR EACH ROW
EXECUTE FUNCTION {guard}()
