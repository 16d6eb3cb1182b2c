-- Forget what comparing releases found that no comparison starts from: of releases before all that are
-- served, and of those before the last hundred.
WITH known AS (
    SELECT h.release_id, row_number() OVER (ORDER BY h.release_id DESC) AS place,
           EXISTS (SELECT
                     FROM dbanon.release AS r
                    WHERE r.release_id = h.release_id
                      AND r.served) AS is_served
      FROM dbanon.history AS h
     WHERE h.release_id = ANY (%(releases)s)
)
DELETE FROM dbanon.history_figures AS f
 USING known AS k
 WHERE k.release_id = f.release_id
   AND (k.place > 100
        OR k.release_id < (SELECT min(s.release_id) FROM known AS s WHERE s.is_served))
