-- Publish some rows with the values of before.
UPDATE {stage} AS s
   SET {values}
  FROM {frozen} AS r
 WHERE {join}
