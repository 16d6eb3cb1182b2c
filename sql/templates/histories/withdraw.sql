-- Take classes out of a copy.
DELETE FROM ONLY {release} AS t
 USING (SELECT unnest(c.places) AS place
          FROM pg_temp.history_copied AS c
         WHERE c.class = ANY ({withdrawn}::bigint[])) AS c
 WHERE t.ctid = c.place
