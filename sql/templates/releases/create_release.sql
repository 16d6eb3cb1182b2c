-- The private copy that readers are served from.
CREATE TABLE {release} AS
{served}
