-- What a live view is served from is never empty. And a snapshot knows the catalogs of its time, but
-- the file of a table is what it is now: one that is older than the file finds rows that it may not
-- see, or misses those that it may.
BEGIN
    IF NOT EXISTS (SELECT FROM ONLY {groups})
       OR EXISTS (SELECT
                    FROM pg_class AS c
                   WHERE c.oid = ANY ({tables}::oid[])
                     AND c.relfilenode <> pg_relation_filenode(c.oid)) THEN
        RAISE EXCEPTION 'could not serialize access: a live view or its source was made anew meanwhile'
            USING ERRCODE = 'serialization_failure',
                  HINT = 'Begin a new transaction.';
    END IF;
    RETURN NOT EXISTS (SELECT FROM {altered}());
END
