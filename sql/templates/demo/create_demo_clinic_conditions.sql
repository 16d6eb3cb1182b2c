-- What was found at these visits, of which most found one thing or nothing.
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
