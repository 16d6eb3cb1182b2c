-- The places of those who were never published.
SELECT place
  FROM pg_temp.history_standing AS s
 CROSS JOIN LATERAL unnest(s.places) AS p (place)
 WHERE NOT s.is_known
 ORDER BY place
