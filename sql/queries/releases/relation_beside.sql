-- The relation of that name, and whether it is a table beside a view that nobody but its publisher, who owns
-- the view, can change.
SELECT c.oid,
       c.relkind = 'r'
       AND (pg_get_userbyid(c.relowner) = current_user
            OR EXISTS (SELECT
                         FROM pg_class AS v
                        WHERE v.relnamespace = n.oid
                          AND v.relname = %(view)s
                          AND v.relowner = c.relowner))
       AND obj_description(c.oid, 'pg_class') IS NOT DISTINCT FROM %(comment)s
       AND NOT c.relrowsecurity
       AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
       AND NOT EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid)
       AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent))
       AND NOT EXISTS (SELECT FROM pg_index AS x WHERE x.indrelid = c.oid)
       AND NOT EXISTS (SELECT
                         FROM aclexplode(c.relacl) AS a
                        WHERE a.grantee <> c.relowner
                          AND a.privilege_type <> 'SELECT')
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s
   AND c.relname = %(name)s
