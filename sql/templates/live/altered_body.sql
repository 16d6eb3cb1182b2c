-- What was added since is no matter.
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT a.kind, a.relation, a.name
      FROM (SELECT m.relation, m.kind, m.name, m.state
              FROM {marks} AS m
            EXCEPT
            ({now})) AS a;
END
