-- Re-check the groups that a statement touched, in its own transaction, and hide those that fail.
DECLARE
    touched integer[];
BEGIN
    -- To a snapshot older than the release its tables are empty, and nothing would be checked.
    IF NOT EXISTS (SELECT FROM {groups}) THEN
        RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
            USING ERRCODE = 'serialization_failure';
    END IF;
    SELECT array_agg(DISTINCT r.group_id)
      INTO touched
      FROM {rows} AS r
      JOIN ({changed}) AS c ON {changed_is_row};
    IF touched IS NULL THEN
        RETURN NULL;
    END IF;
    -- Two transactions that each take a member of one group must not both count the other's:
    -- the second waits here, or under REPEATABLE READ and SERIALIZABLE fails to serialize.
    PERFORM FROM {groups} AS g WHERE g.group_id = ANY (touched) ORDER BY g.group_id FOR UPDATE;
    UPDATE {groups} AS g SET version = g.version + 1 WHERE g.group_id = ANY (touched);
    -- A row whose key, quasi-identifier or subject changed is no longer whom its group publishes.
    DELETE FROM {rows} AS r USING ({moved}) AS c WHERE {changed_is_row};
    UPDATE {groups} AS g
       SET shown = false
     WHERE g.group_id = ANY (touched)
       AND g.shown
       AND NOT EXISTS (SELECT
                         FROM {rows} AS r
                         JOIN ONLY {source} AS s ON {join}
                        WHERE r.group_id = g.group_id
                       HAVING {holds});
    RETURN NULL;
END
