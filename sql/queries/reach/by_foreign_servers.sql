-- Which foreign servers let readers log in to this very database as somebody else.
--
-- An address may be one of many names of this machine, or of a proxy, so a server for a database of this
-- name is held to lead here. As whom a mapping logs in is shown to few; a mapping that is not known to be the reader's own is
-- held to be somebody else's.
WITH server (oid, name) AS (
    SELECT s.oid, s.srvname::text
      FROM pg_foreign_server AS s
      JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
     CROSS JOIN LATERAL (
           SELECT max(t.option_value) FILTER (WHERE t.option_name = 'dbname'),
                  max(t.option_value) FILTER (WHERE t.option_name = 'port'),
                  lower(coalesce(max(t.option_value)
                                 FILTER (WHERE t.option_name IN ('hostaddr', 'host')), ''))
             FROM pg_options_to_table(s.srvoptions) AS t
           ) AS o (dbname, port, host)
     WHERE o.dbname = current_database()
        OR o.dbname IS NULL
       AND w.fdwname IN ('postgres_fdw', 'dblink_fdw')
       AND current_setting('port')
           = ANY (string_to_array(coalesce(o.port, current_setting('port')), ','))
       AND (o.host ~ '^(/|localhost|127[.]|0[.]0[.]0[.]0|::|$)'
            OR o.host = host(inet_server_addr()))
)
SELECT DISTINCT a.reader, a.name, 'foreign server', '', s.name, a.role = m.umuser
  FROM server AS s
  JOIN pg_user_mappings AS m ON m.srvid = s.oid
  JOIN unnest(%(readers)s::text[], %(roles)s::oid[], %(names)s::text[])
       AS a (reader, role, name)
    ON m.umuser IN (a.role, 0)
 WHERE has_server_privilege(a.role, s.oid, 'USAGE')
   AND (m.umoptions IS NULL OR NOT format('user=%%s', a.name) = ANY (m.umoptions))
