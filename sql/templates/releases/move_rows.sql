-- Put what was written for a release in the place of the former one's. Whoever looks with an older
-- snapshot still sees the rows of before.
INSERT INTO {former}
SELECT n.*
  FROM {new} AS n
