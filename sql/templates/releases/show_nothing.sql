-- Leave the columns of a view, and no row.
CREATE OR REPLACE VIEW {view} AS
SELECT {columns}
 WHERE false
