-- The places of those who were never published.
SELECT s.place FROM pg_temp.history_standing AS s WHERE NOT s.is_known ORDER BY s.place
