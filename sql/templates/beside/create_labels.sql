-- What readers may know of labels: those that are published, and what is above them.
CREATE TABLE {labels} (
    column_name text NOT NULL,
    label text NOT NULL,
    parent text,
    level integer NOT NULL,
    values_below integer NOT NULL
)
