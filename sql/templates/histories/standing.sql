-- Who of those that were read is published now, in which classes and with which values, and who ever
-- was. A value that was never published has no number. Nothing is looked up row by row: how many there
-- are, no planner knows.
CREATE TEMPORARY TABLE history_standing ON COMMIT DROP AS
WITH valued AS MATERIALIZED (
    SELECT o.code, v.value_id
      FROM {codes} AS o
      LEFT JOIN dbanon.history_value AS v
        ON v.table_schema = {table_schema}
       AND v.table_name = {table_name}
       AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
),
read AS MATERIALIZED (
    SELECT p.person, array_agg(p.place ORDER BY p.place) AS places,
           array_agg(v.value_id ORDER BY v.value_id) AS value_ids
      FROM (SELECT l.place, l.code, {person} AS person
              FROM {read} AS l
              JOIN dbanon.history_key AS k ON k.key_id = {key}) AS p
      JOIN valued AS v ON v.code = p.code
     GROUP BY p.person
)
SELECT h.person, h.places, h.value_ids, s.classes, s.value_ids AS shown_ids,
       n.person IS NOT NULL AS is_known
  FROM read AS h
  LEFT JOIN pg_temp.history_before AS s ON s.person = h.person
  LEFT JOIN (SELECT DISTINCT e.person
               FROM pg_temp.history_entries AS e) AS n ON n.person = h.person
