-- The rows that are left of the classes of a copy that have lost some.
(SELECT unnest(o.places) AS place FROM pg_temp.history_copied AS o) AS c
JOIN ONLY {release} AS s ON s.ctid = c.place
