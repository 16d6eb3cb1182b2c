-- The classes of a copy in which rows with the same sensitive values differ in something else.
SELECT {class}
  FROM (SELECT {quasi}
          FROM ONLY {release} AS r
         GROUP BY {quasi}, ROW({sensitive})::text
        HAVING min(ROW({others})::text) <> max(ROW({others})::text)) AS s
  JOIN dbanon.history_key AS k ON k.key_id = {key}
