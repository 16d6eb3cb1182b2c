-- What a release is served from is never empty.
BEGIN
    IF EXISTS (SELECT FROM ONLY {table}) THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION 'could not serialize access: the release was published or withdrawn meanwhile'
        USING ERRCODE = 'serialization_failure',
              HINT = 'Begin a new transaction.';
END
