-- Which class each row of the release is in, with what its models look at, as the source has it now.
SELECT r.group_id{columns}
  FROM ONLY {source} AS s
  JOIN {rows} AS r ON {join}
