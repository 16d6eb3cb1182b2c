-- Publication locks: one publication of a table at a time.

-- name: await_turn
-- Wait until no publication holds the row of a table.
SELECT
  FROM dbanon.publishing
 WHERE source = %s
   FOR UPDATE

-- name: enter_turn
-- Create the lock row of a table, unless it exists.
INSERT INTO dbanon.publishing (source)
VALUES (%s)
ON CONFLICT DO NOTHING

-- name: former_names
-- Published tables whose names no longer exist, each with its served releases; empty unless the relation was
-- published under another name before (otherwise the open publication is its first).
SELECT r.table_schema, r.table_name,
       coalesce(array_agg(r.release_id ORDER BY r.release_id) FILTER (WHERE r.served), '{}')
  FROM dbanon.release AS r
 WHERE EXISTS (SELECT
                 FROM dbanon.publishing AS p
                WHERE p.source = %(source)s
                  AND p.turns > 1)
   AND NOT EXISTS (SELECT
                     FROM dbanon.release AS o
                    WHERE o.table_schema = %(schema)s
                      AND o.table_name = %(name)s)
   AND NOT EXISTS (SELECT
                     FROM pg_class AS c
                     JOIN pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE n.nspname = r.table_schema
                      AND c.relname = r.table_name)
 GROUP BY r.table_schema, r.table_name
 ORDER BY r.table_schema, r.table_name

-- name: hold_turn
-- Lock the row of a table without waiting.
SELECT
  FROM dbanon.publishing
 WHERE source = %s
   FOR UPDATE NOWAIT

-- name: take_turn
-- Update the row of a table: a snapshot older than the last publication fails here.
UPDATE dbanon.publishing
   SET turns = turns + 1
 WHERE source = %s

-- name: whose_turn
-- The session that holds the row of a table.
SELECT l.pid, a.usename::text
  FROM dbanon.publishing AS p
  JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = p.xmax AND l.granted
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE p.source = %s
