-- The private view by which guards read the source. A function looks tables up by their names each
-- time it is planned, and whoever owns the schema can rename it; a view knows them once and for all.
CREATE VIEW {members} AS
{live}
