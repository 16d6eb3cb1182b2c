-- About how many persons have each combination of values.
CREATE TABLE {counts} ({columns}, persons bigint NOT NULL)
