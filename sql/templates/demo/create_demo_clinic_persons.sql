-- Invented persons of a clinic, the same ones each time.
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
