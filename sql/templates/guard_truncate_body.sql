-- Hide everything: nothing of what was published is left.
BEGIN
    UPDATE {groups} SET shown = false, version = version + 1;
    DELETE FROM {rows};
    RETURN NULL;
END
