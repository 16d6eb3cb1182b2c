-- Forget who was published in the releases of a series, which classes and which values they had, and the
-- key of their hashes, unless another series has it, too.
WITH forgotten AS (
    UPDATE dbanon.history AS h
       SET forgotten_at = now()
     WHERE h.table_schema = %(schema)s
       AND h.table_name = %(name)s
       AND h.series = %(series)s
       AND h.forgotten_at IS NULL
    RETURNING h.release_id, h.key_id
),
figures AS (
    DELETE FROM dbanon.history_figures AS f
     WHERE f.release_id IN (SELECT g.release_id FROM forgotten AS g)
),
members AS (
    DELETE FROM dbanon.history_member AS m
     WHERE m.release_id IN (SELECT g.release_id FROM forgotten AS g)
),
keys AS (
    DELETE FROM dbanon.history_key AS k
     WHERE k.key_id IN (SELECT g.key_id FROM forgotten AS g)
       AND NOT EXISTS (SELECT
                         FROM dbanon.history AS h
                        WHERE h.key_id = k.key_id
                          AND h.forgotten_at IS NULL
                          AND h.release_id NOT IN (SELECT g.release_id FROM forgotten AS g))
),
combinations AS (
    DELETE FROM dbanon.history_value AS v
     WHERE v.table_schema = %(schema)s
       AND v.table_name = %(name)s
       AND v.value_id NOT IN (SELECT u.value_id
                                FROM dbanon.history AS h
                                JOIN dbanon.history_member AS m ON m.release_id = h.release_id
                               CROSS JOIN LATERAL unnest(m.value_ids) AS u (value_id)
                               WHERE h.table_schema = %(schema)s
                                 AND h.table_name = %(name)s
                                 AND h.release_id NOT IN (SELECT g.release_id FROM forgotten AS g))
)
SELECT g.release_id
  FROM forgotten AS g
 ORDER BY g.release_id
