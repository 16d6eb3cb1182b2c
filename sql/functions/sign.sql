-- Set the role that wrote a row, and the time if the row has a column for it, regardless of the given values.
CREATE OR REPLACE FUNCTION dbanon.sign()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    signed jsonb := jsonb_build_object(TG_ARGV[0], session_user);
BEGIN
    -- To end a release is not to make it. A trigger OF columns would keep these from being dropped.
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'release'
       AND to_jsonb(NEW) - '{served,compared}'::text[] = to_jsonb(OLD) - '{served,compared}'::text[] THEN
        RETURN NEW;
    END IF;
    IF TG_NARGS > 1 THEN
        signed := signed || jsonb_build_object(TG_ARGV[1], now());
    END IF;
    RETURN jsonb_populate_record(NEW, signed);
END
$function$;

COMMENT ON FUNCTION dbanon.sign() IS
    'The trigger that notes who wrote a policy, a schedule, a release, a check or what was spent.';

DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.policy_version;
CREATE TRIGGER dbanon_sign BEFORE INSERT OR UPDATE OF stored_by, stored_at ON dbanon.policy_version
    FOR EACH ROW EXECUTE FUNCTION dbanon.sign('stored_by', 'stored_at');

DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.schedule;
CREATE TRIGGER dbanon_sign BEFORE INSERT OR UPDATE ON dbanon.schedule
    FOR EACH ROW EXECUTE FUNCTION dbanon.sign('stored_by');

DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.release;
CREATE TRIGGER dbanon_sign BEFORE INSERT OR UPDATE ON dbanon.release
    FOR EACH ROW EXECUTE FUNCTION dbanon.sign('created_by');

DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.verification;
CREATE TRIGGER dbanon_sign BEFORE INSERT OR UPDATE OF verified_by ON dbanon.verification
    FOR EACH ROW EXECUTE FUNCTION dbanon.sign('verified_by');

DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.spending;
CREATE TRIGGER dbanon_sign BEFORE INSERT OR UPDATE OF spent_by ON dbanon.spending
    FOR EACH ROW EXECUTE FUNCTION dbanon.sign('spent_by');
