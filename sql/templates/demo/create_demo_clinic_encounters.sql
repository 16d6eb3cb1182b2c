-- Their visits to it: none of some, up to eight of others.
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
