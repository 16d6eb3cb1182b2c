-- Which run of which server this is, and which of its databases.
SELECT pg_postmaster_start_time()::text || ' ' || d.oid::text
  FROM pg_database AS d
 WHERE d.datname = current_database()
