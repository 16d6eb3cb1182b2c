-- Free the session of what a role, a database or a server is set to; settings that this server does
-- not have give NULL. To change a setting that is right already would need rights for nothing.
SELECT pg_catalog.set_config(s.name, s.value, false)
  FROM (VALUES {settings}) AS s (name, value)
 WHERE pg_catalog.current_setting(s.name, true) OPERATOR(pg_catalog.<>) s.value
UNION ALL
SELECT pg_catalog.set_config('synchronous_commit', 'local', false)
 WHERE pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off'
