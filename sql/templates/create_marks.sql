-- Note what the guards of a live view rely on, now that they stand.
CREATE TABLE {marks} AS
{now}
