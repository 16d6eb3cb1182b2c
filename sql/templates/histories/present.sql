-- Whom a release shows, by keyed hash, in which class and with which values; only within publishing. The
-- hashes are worked out by themselves, before anything is joined to them: so several processes can, though none
-- but the first may read temporary tables.
CREATE TEMPORARY TABLE history_present ON COMMIT DROP AS
WITH class AS MATERIALIZED (
    SELECT g.group_id, {class} AS class
      FROM {groups} AS g
      JOIN dbanon.history_key AS k ON k.key_id = {key}
),
valued AS MATERIALIZED (
    SELECT o.code, v.value_id  -- all have a number: a left join keeps the planner from expecting none
      FROM {codes} AS o
      LEFT JOIN dbanon.history_value AS v
        ON v.table_schema = {table_schema}
       AND v.table_name = {table_name}
       AND v.digest = sha256(convert_to(o.value::text, 'UTF8'))
)
SELECT h.person, c.class, v.value_id
  FROM (SELECT {person} AS person, r.group_id, r.value
          FROM {members}
         CROSS JOIN dbanon.history_key AS k
         WHERE k.key_id = {key}
        OFFSET 0) AS h
  JOIN class AS c ON c.group_id = h.group_id
  JOIN valued AS v ON v.code = h.value
 WHERE v.value_id IS NOT NULL
