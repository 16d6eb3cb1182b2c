-- The open transaction's number, NULL while it has written nothing, and which run of the server it is in.
SELECT pg_current_xact_id_if_assigned()::text, pg_postmaster_start_time()
