-- How many rows of a live release readers see, and how many are hidden with their classes.
SELECT count(*) FILTER (WHERE g.shown),
       count(*) FILTER (WHERE NOT g.shown),
       count(DISTINCT g.group_id) FILTER (WHERE NOT g.shown)
  FROM ONLY {rows} AS r
  JOIN ONLY {groups} AS g ON g.group_id = r.group_id
