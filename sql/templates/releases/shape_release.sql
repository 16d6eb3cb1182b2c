-- The columns that the private copy is to have, to be compared with those it has.
CREATE TABLE {release} AS
{served}
  WITH NO DATA
