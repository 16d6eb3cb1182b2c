-- Refuse an approval that is not of the newest version of a policy, that is of another digest than its own, or whose role
-- could act as the author or the author as it, or as one that stores taxonomies, if the policy uses any. Role and time
-- are those of the session, regardless of the given values.
CREATE OR REPLACE FUNCTION dbanon.approve()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    newest record;
BEGIN
    SELECT v.version, v.document, v.stored_by
      INTO newest
      FROM dbanon.policy_version AS v
     WHERE v.table_schema = NEW.table_schema
       AND v.table_name = NEW.table_name
       AND v.name = NEW.name
     ORDER BY v.version DESC
     LIMIT 1;
    IF newest.document IS NULL OR newest.version <> NEW.version THEN
        RAISE EXCEPTION 'version % is not the stored one of this policy', NEW.version
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'dbanon policy show prints the stored version.';
    END IF;
    IF NEW.digest <> dbanon.policy_digest(newest.document) THEN
        RAISE EXCEPTION 'the policy or one of its taxonomies is not that of this digest'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'dbanon policy show prints the digest of the stored version.';
    END IF;
    -- Whoever is a superuser may act as every role.
    IF NOT EXISTS (SELECT
                     FROM pg_roles AS r
                    WHERE r.rolname = newest.stored_by
                      AND r.rolname <> session_user
                      AND NOT pg_has_role(session_user, r.oid, 'MEMBER')
                      AND NOT pg_has_role(r.oid, session_user, 'MEMBER')) THEN
        RAISE EXCEPTION '% may not approve a policy that % stored', session_user, coalesce(newest.stored_by, 'nobody')
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Let a role approve it that cannot act as its author, nor its author as that role.';
    END IF;
    IF jsonb_path_exists(newest.document, '$.columns[*].taxonomy')
       AND EXISTS (SELECT
                     FROM pg_roles AS r
                    WHERE pg_has_role(session_user, r.oid, 'MEMBER')
                      AND has_any_column_privilege(r.oid, 'dbanon.taxonomy_node', 'INSERT, UPDATE')) THEN
        RAISE EXCEPTION '% can store the taxonomies that this policy uses', session_user
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Let a role approve it that cannot store taxonomies.';
    END IF;
    NEW.approved_by := session_user;
    NEW.approved_at := now();
    RETURN NEW;
END
$function$;

COMMENT ON FUNCTION dbanon.approve() IS
    'The trigger of approvals, which lets nobody approve their own policy.';

DROP TRIGGER IF EXISTS dbanon_approve ON dbanon.policy_approval;
CREATE TRIGGER dbanon_approve BEFORE INSERT OR UPDATE ON dbanon.policy_approval
    FOR EACH ROW EXECUTE FUNCTION dbanon.approve();
