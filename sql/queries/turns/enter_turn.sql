-- Make the row that publications of a table take turns by, unless it is there.
INSERT INTO dbanon.publishing (source)
VALUES (%s)
ON CONFLICT DO NOTHING
