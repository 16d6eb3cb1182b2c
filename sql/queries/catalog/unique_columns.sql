-- The columns of every UNIQUE index of a table, also of some of its rows or of one of its partitions.
-- What an expression is made of tells rows apart wherever the expression does.
WITH RECURSIVE part (oid) AS (
    SELECT %(relation)s::oid
    UNION
    SELECT i.inhrelid
      FROM part AS p
      JOIN pg_inherits AS i ON i.inhparent = p.oid
)
SELECT DISTINCT ARRAY(SELECT a.attname::text
                        FROM pg_attribute AS a
                       WHERE a.attrelid = x.indrelid
                         AND (a.attnum = ANY (x.indkey[0 : x.indnkeyatts - 1])
                              OR EXISTS (SELECT
                                           FROM regexp_matches(x.indexprs::text,
                                                               ':varattno (\d+)', 'g') AS v (found)
                                          WHERE v.found[1]::int = a.attnum))
                       ORDER BY a.attname) AS columns
  FROM part AS p
  JOIN pg_index AS x ON x.indrelid = p.oid
 WHERE x.indisunique
 ORDER BY columns
