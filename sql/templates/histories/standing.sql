-- Who of those that were read is published now, in which classes and with which values, and who ever
-- was. A value that was never published has no number.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
SELECT h.person, h.places, h.value_ids, s.classes, s.value_ids AS shown_ids,
       EXISTS (SELECT FROM pg_temp.history_entries AS e WHERE e.person = h.person) AS is_known
  FROM (SELECT p.person, array_agg(p.place ORDER BY p.place) AS places,
               array_agg(v.value_id ORDER BY v.value_id) AS value_ids
          FROM (SELECT l.place, l.code, {person} AS person
                  FROM {read} AS l
                  JOIN dbanon.history_key AS k ON k.key_id = {key}) AS p
          JOIN {codes} AS o ON o.code = p.code
          LEFT JOIN dbanon.history_value AS v
            ON v.table_schema = {table_schema}
           AND v.table_name = {table_name}
           AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
         GROUP BY p.person) AS h
  LEFT JOIN pg_temp.history_before AS s ON s.person = h.person
