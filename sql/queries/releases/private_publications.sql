-- The publications that carry private tables, with the number of these.
SELECT p.pubname::text, count(*)
  FROM pg_publication_tables AS p
 WHERE p.schemaname IN ('dbanon', 'dbanon_data')
 GROUP BY 1
 ORDER BY 1
