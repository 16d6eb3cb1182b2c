-- The persons of the tables of a dataset, with all that is shown of the classes of each in one of them.
CREATE TEMPORARY TABLE {linked} (
    part integer NOT NULL,
    person uuid NOT NULL,
    class text NOT NULL
)
ON COMMIT DROP
