-- Write down whom a relation showed in a release.
CREATE TEMPORARY TABLE {rows} ON COMMIT DROP AS
{shown}
