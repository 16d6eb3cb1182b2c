-- The release is nobody's any more.
BEGIN
    RAISE EXCEPTION 'the release was withdrawn'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END
