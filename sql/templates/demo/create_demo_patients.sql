-- The participants of the serum free light chain study.
CREATE TABLE {table} (
    patient_id integer PRIMARY KEY,
    age integer NOT NULL,
    sex text NOT NULL,
    sample_yr integer NOT NULL,
    kappa numeric NOT NULL,
    lambda numeric NOT NULL,
    flc_grp integer NOT NULL,
    creatinine numeric,
    mgus text NOT NULL,
    futime integer NOT NULL,
    death text NOT NULL,
    chapter text
)
