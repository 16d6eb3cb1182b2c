-- Who was read, each in the place that the program knows; only within publishing.
CREATE TEMPORARY TABLE {read} (
    place integer NOT NULL,
    {columns}
)
ON COMMIT DROP
