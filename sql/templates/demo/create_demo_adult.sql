-- The persons of the census excerpt, numbered.
CREATE TABLE {table} (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sex text NOT NULL,
    age integer NOT NULL,
    race text NOT NULL,
    "marital-status" text NOT NULL,
    education text NOT NULL,
    "native-country" text NOT NULL,
    workclass text NOT NULL,
    occupation text NOT NULL,
    "salary-class" text NOT NULL
)
