-- Number the entries of a table, and store their number in another table, so that a loss is noticed. It runs as its
-- owner, as a role that spends must not change that number, and only for this table: values of another may have types
-- with casts of other roles. Restored entries keep their numbers.
CREATE OR REPLACE FUNCTION dbanon.number_spending()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF TG_RELID <> 'dbanon.spending'::regclass THEN
        RAISE EXCEPTION 'dbanon.number_spending is not made for %.%', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Drop the trigger.';
    END IF;
    IF NEW.epsilon = 'NaN' THEN
        NEW.number := 0;
        RETURN NEW;
    END IF;
    INSERT INTO dbanon.account AS a (table_schema, table_name, table_oid, entries)
    VALUES (NEW.table_schema, NEW.table_name, NEW.table_oid, coalesce(NEW.number, 1))
    ON CONFLICT (table_schema, table_name) DO UPDATE
       SET table_oid = NEW.table_oid,
           entries = greatest(a.entries, coalesce(NEW.number, a.entries + 1))
    RETURNING coalesce(NEW.number, a.entries) INTO NEW.number;
    RETURN NEW;
END
$function$;

COMMENT ON FUNCTION dbanon.number_spending() IS
    'The trigger that numbers what counts with noise have spent.';

DROP TRIGGER IF EXISTS dbanon_number ON dbanon.spending;
CREATE TRIGGER dbanon_number BEFORE INSERT ON dbanon.spending
    FOR EACH ROW EXECUTE FUNCTION dbanon.number_spending();
