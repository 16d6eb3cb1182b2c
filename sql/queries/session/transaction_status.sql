-- What became of a transaction; NULL when this is another run of the server, or it is too long ago.
SELECT CASE WHEN pg_postmaster_start_time() = %(run)s THEN pg_xact_status(%(number)s::text::xid8) END
