-- Hide everything when a row of a partition is written that is not where it was on publishing: it
-- may have been reached through a table without guards. The ancestors were noted in the trigger.
BEGIN
    IF ARRAY(SELECT a.relid::oid FROM pg_partition_ancestors(TG_RELID) AS a)
           IS DISTINCT FROM TG_ARGV[0]::oid[] THEN
        UPDATE {groups} AS g SET shown = false, version = g.version + 1 WHERE g.shown;
        IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
            RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
                USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    RETURN NULL;
END
