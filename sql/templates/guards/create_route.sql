-- Look at every row that is written to a partition, by whatever way it is reached.
CREATE TRIGGER {trigger}
 AFTER DELETE OR UPDATE ON {source}
   FOR EACH ROW
EXECUTE FUNCTION {guard}({ancestors})
