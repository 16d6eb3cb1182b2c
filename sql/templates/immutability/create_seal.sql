-- Let no statement change the copy, not even one of its owner's.
CREATE TRIGGER {trigger}
BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {release}
   FOR EACH STATEMENT
EXECUTE FUNCTION dbanon.refuse_change()
