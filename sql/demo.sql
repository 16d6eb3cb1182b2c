-- Tables of the demonstration.

-- name: create_demo_adult
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

-- name: create_demo_clinic_conditions
-- The diagnoses at these visits, mostly one or none per visit.
CREATE TABLE {table} AS
SELECT (row_number() OVER (ORDER BY e.encounter_id, n))::integer AS condition_id,
       e.encounter_id,
       e.person_id,
       (ARRAY['hypertension', 'hypertension', 'diabetes', 'diabetes', 'asthma', 'bronchitis', 'bronchitis',
              'low back pain', 'low back pain', 'depression', 'reflux', 'sprain', 'infection', 'infection',
              'anemia', 'migraine'])[1 + (hashint4extended(e.encounter_id * 4 + n, 10) & 15)] AS condition
  FROM public.clinic_encounters AS e
 CROSS JOIN LATERAL generate_series(1, (hashint4extended(e.encounter_id, 11) & 3)::integer / 2 + 1) AS n
 WHERE hashint4extended(e.encounter_id, 12) & 7 > 1;
ALTER TABLE {table} ADD PRIMARY KEY (condition_id);
ALTER TABLE {table} ALTER person_id SET NOT NULL, ADD FOREIGN KEY (person_id) REFERENCES public.clinic_persons

-- name: create_demo_clinic_encounters
-- The visits of these persons, up to eight each.
CREATE TABLE {table} AS
SELECT (row_number() OVER (ORDER BY i, n))::integer AS encounter_id,
       i AS person_id,
       timestamp '2023-01-01 08:00'
       + interval '1 minute' * ((hashint4extended(i * 16 + n, 5) & 65535) * 1576800::bigint >> 16) AS started,
       (20 + (hashint4extended(i * 16 + n, 6) & 1023))::numeric(8, 2) AS cost
  FROM generate_series(1, 2000) AS i
 CROSS JOIN LATERAL generate_series(1, (hashint4extended(i, 7) & 7)::integer
                                       * (hashint4extended(i, 8) & 7)::integer / 7 + 1) AS n
 WHERE hashint4extended(i, 9) & 15 > 1;
ALTER TABLE {table} ADD PRIMARY KEY (encounter_id);
ALTER TABLE {table} ALTER person_id SET NOT NULL, ADD FOREIGN KEY (person_id) REFERENCES public.clinic_persons

-- name: create_demo_clinic_persons
-- Generated persons of a clinic, the same ones each time.
CREATE TABLE {table} AS
SELECT i AS person_id,
       'Person ' || i AS name,
       date '1930-01-01' + ((hashint4extended(i, 1) & 65535) * 31000 >> 16)::integer AS birth_date,
       CASE WHEN hashint4extended(i, 2) & 255 < 131 THEN 'female' ELSE 'male' END AS sex,
       (ARRAY['02108', '02115', '02139', '02472', '01420', '01440', '01852', '01854']
       )[1 + (hashint4extended(i, 3) & 7)] AS zip,
       (ARRAY['public', 'public', 'public', 'private', 'private', 'company', 'none', 'none']
       )[1 + (hashint4extended(i, 4) & 7)] AS insurance
  FROM generate_series(1, 2000) AS i;
ALTER TABLE {table} ADD PRIMARY KEY (person_id)

-- name: create_demo_patients
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
