-- The values of a column that are no leaf of a taxonomy's newest version, and on how many rows each is.
SELECT s.{column}::text AS value, count(*) AS rows
  FROM {table} AS s
 WHERE s.{column} IS NOT NULL
   AND NOT EXISTS (SELECT
                     FROM dbanon.taxonomy_node AS n
                    WHERE n.label = s.{column}::text
                      AND n.taxonomy_id = (SELECT t.taxonomy_id
                                             FROM dbanon.taxonomy AS t
                                            WHERE t.name = {taxonomy}
                                            ORDER BY t.version DESC
                                            LIMIT 1)
                      AND NOT EXISTS (SELECT
                                        FROM dbanon.taxonomy_node AS c
                                       WHERE c.taxonomy_id = n.taxonomy_id
                                         AND c.parent_id = n.node_id))
 GROUP BY 1
 ORDER BY 2 DESC, 1;
