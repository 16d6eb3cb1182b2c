-- The private values of a release, one row a group, each column in its published type.
CREATE TABLE {groups} (
    group_id integer NOT NULL,
    shown boolean NOT NULL DEFAULT true,
    version integer NOT NULL DEFAULT 0,
    release bigint NOT NULL DEFAULT {release},
    {columns}
)
