-- The live source under stored recodings, without the classes that no longer hold.
SELECT {columns}
  FROM ONLY {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
 WHERE g.shown
   AND {seen}()
