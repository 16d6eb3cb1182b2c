-- Which of the tables a publication keeps from being changed, as nothing identifies their rows for its subscribers.
SELECT c.oid, n.nspname::text, c.relname::text
  FROM unnest(%(tables)s::text[]) AS t (name)
  JOIN pg_class AS c ON c.oid = to_regclass(t.name)
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relreplident IN ('d', 'n')
   AND NOT EXISTS (SELECT
                     FROM pg_index AS i
                    WHERE i.indrelid = c.oid
                      AND i.indisprimary
                      AND c.relreplident = 'd')
   AND EXISTS (SELECT
                 FROM pg_publication_tables AS p
                 JOIN pg_publication AS u ON u.pubname = p.pubname
                WHERE p.schemaname = n.nspname
                  AND p.tablename = c.relname
                  AND (u.pubupdate OR u.pubdelete))
 ORDER BY 2, 3
