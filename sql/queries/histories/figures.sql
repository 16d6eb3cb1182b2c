-- What comparing some releases found.
SELECT f.release_id, f.figures
  FROM dbanon.history_figures AS f
 WHERE f.release_id = ANY (%(releases)s)
