-- Hide everything: nothing of what was published is left.
BEGIN
    IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
        RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
            USING ERRCODE = 'serialization_failure';
    END IF;
    UPDATE {groups} SET shown = false, version = version + 1;
    DELETE FROM {rows};
    RETURN NULL;
END
