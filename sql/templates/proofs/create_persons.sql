-- The persons of a release with what is published of them, as long as models are proved of persons.
CREATE TABLE {persons} AS
SELECT DISTINCT {columns}, s.{subject}
  FROM {source} AS s
  JOIN {rows} AS r ON {join}
  JOIN {groups} AS g ON g.group_id = r.group_id
