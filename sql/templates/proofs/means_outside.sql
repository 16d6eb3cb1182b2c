-- Count the classes of which a mean or a midpoint lies outside of the values, by column. Rounding alone may take it there.
SELECT {outside}
  FROM (SELECT r.group_id, {ends}
          FROM {source} AS s
          JOIN {rows} AS r ON {join}
         GROUP BY r.group_id) AS c
  JOIN {groups} AS g ON g.group_id = c.group_id
