-- Re-check the classes that a statement touched, in its own transaction, and hide those that fail.
#variable_conflict use_column
DECLARE
    touched integer[];
BEGIN
    -- A hidden class stays hidden until the next release, whatever becomes of it.
    SELECT array_agg(DISTINCT r.group_id)
      INTO touched
      FROM {rows} AS r
      JOIN ({changed}) AS c ON {changed_is_row}
      JOIN {groups} AS g ON g.group_id = r.group_id AND g.shown;
    IF touched IS NULL THEN
        -- A snapshot older than the release does not see its classes: then nothing was checked.
        IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
            RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
                USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END IF;
    -- Two transactions that each take a member of one class must not both count the other's: the
    -- second waits here, then counts with a new snapshot, or under REPEATABLE READ and SERIALIZABLE
    -- fails to serialize, as the row is written and not only locked. Several are taken in order.
    IF cardinality(touched) > 1 THEN
        PERFORM FROM {groups} AS g WHERE g.group_id = ANY (touched) ORDER BY g.group_id FOR UPDATE;
    END IF;
    UPDATE {groups} AS g SET version = g.version + 1 WHERE g.group_id = ANY (touched);
    -- A row that is gone, or whose key, quasi-identifier or subject changed, is no longer whom its
    -- class publishes; and whoever takes its key later is not shown in its place.
    DELETE FROM {rows} AS r USING ({moved}) AS c WHERE {changed_is_row};
    {plain}
    {models}
    RETURN NULL;
END
