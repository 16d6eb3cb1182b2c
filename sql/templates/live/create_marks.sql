-- Where it is noted what the guards of a live view rely on.
CREATE TABLE {marks} (
    relation oid,
    kind text,
    name text,
    state text
)
