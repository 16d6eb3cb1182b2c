-- Copy the columns into a type, and hold the table to it.
DECLARE
    columns text;
BEGIN
    SELECT string_agg(format('%I %s%s',
                             a.attname,
                             format_type(a.atttypid, a.atttypmod),
                             CASE WHEN c.oid IS NOT NULL
                                  THEN format(' COLLATE %I.%I', n.nspname, c.collname) END),
                      ', ' ORDER BY a.attnum)
      INTO columns
      FROM pg_attribute AS a
      LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
      LEFT JOIN pg_namespace AS n ON n.oid = c.collnamespace
     WHERE a.attrelid = {release_name}::regclass
       AND a.attnum > 0
       AND NOT a.attisdropped;
    EXECUTE format('CREATE TYPE %s AS (%s)', {shape_name}, columns);
    ALTER TABLE {release} OF {shape};
END
