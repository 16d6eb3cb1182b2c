-- What the guards of a live view rely on, as it is now. A table that is written anew gets another
-- file, whatever becomes of its values. A trigger that is disabled and enabled again, or a function
-- that is replaced, is another version of its row in the catalog; so is the view by which they read.
SELECT c.oid AS relation, 'file' AS kind, ''::text AS name,
       concat_ws(' ', c.relpersistence, pg_relation_filenode(c.oid)) AS state
  FROM pg_class AS c
 WHERE c.oid = ANY ({tables}::oid[])
 UNION ALL
SELECT c.oid, 'policy', '', row_security_active(c.oid)::text
  FROM pg_class AS c
 WHERE c.oid = ANY ({tables}::oid[])
   AND c.relkind = 'r'
 UNION ALL
SELECT a.attrelid, 'column', a.attname::text,
       concat_ws(' ', a.attnum, a.atttypid, a.atttypmod, a.attcollation)
  FROM pg_attribute AS a
 WHERE a.attrelid = ANY ({tables}::oid[])
   AND a.attname = ANY ({columns}::text[])
 UNION ALL
SELECT n.conrelid, 'key', '', n.oid::text
  FROM pg_constraint AS n
 WHERE n.conrelid = ANY ({tables}::oid[])
   AND n.contype = 'p'
 UNION ALL
SELECT t.tgrelid, 'trigger', t.tgname::text, concat_ws(' ', t.tgenabled, t.xmin)
  FROM pg_trigger AS t
 WHERE t.tgrelid = ANY ({tables}::oid[])
   AND t.tgname = ANY ({triggers}::text[])
 UNION ALL
SELECT DISTINCT t.tgrelid, 'function', p.proname::text, p.xmin::text
  FROM pg_trigger AS t
  JOIN pg_proc AS p ON p.oid = t.tgfoid
 WHERE t.tgrelid = ANY ({tables}::oid[])
   AND t.tgname = ANY ({triggers}::text[])
 UNION ALL
SELECT r.ev_class, 'view', '', r.xmin::text
  FROM pg_rewrite AS r
 WHERE r.ev_class = ANY ({tables}::oid[])
   AND r.rulename = '_RETURN'
 UNION ALL
SELECT DISTINCT a.attrelid, 'label', a.attname::text, concat_ws(' ', e.oid, e.enumlabel)
  FROM pg_attribute AS a
  JOIN pg_type AS t ON t.oid = a.atttypid
  JOIN pg_enum AS e ON e.enumtypid IN (t.oid, t.typbasetype, t.typelem)
 WHERE a.attrelid = ANY ({tables}::oid[])
   AND a.attname = ANY ({enums}::text[])
