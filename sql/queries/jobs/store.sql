-- Add the schedule of a table, or put it in the place of the one before.
INSERT INTO dbanon.schedule (table_schema, table_name, cron, zone, stored_at)
VALUES (%(schema)s, %(name)s, %(cron)s, %(zone)s, %(now)s)
ON CONFLICT (table_schema, table_name) DO UPDATE
   SET cron = excluded.cron,
       zone = excluded.zone,
       stored_at = excluded.stored_at,
       stored_by = session_user
