-- Let the guard see every statement of its kind on the source.
CREATE TRIGGER {trigger}
 AFTER {event} ON {source}
  {transition}
   FOR EACH STATEMENT
EXECUTE FUNCTION {guard}()
