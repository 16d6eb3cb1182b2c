-- Let the labels of an earlier version count the values that they stand for.
ALTER TABLE {labels} ADD COLUMN values_below integer NOT NULL DEFAULT 0
