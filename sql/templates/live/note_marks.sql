-- Note what the guards of a live view rely on, now that they stand.
INSERT INTO {marks} (relation, kind, name, state)
{now}
