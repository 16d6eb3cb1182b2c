-- What is no longer as publishing left it: each column tells one way in which a private copy was opened.
SELECT c.reloftype = 0,
       NOT EXISTS (SELECT
                     FROM pg_trigger AS t
                    WHERE t.tgrelid = c.oid
                      AND t.tgname = %(trigger)s
                      AND t.tgenabled = 'A'
                      AND t.tgtype = 62
                      AND t.tgfoid = to_regprocedure('dbanon.refuse_change()')),
       c.relhasrules
           OR EXISTS (SELECT
                        FROM pg_trigger AS t
                       WHERE t.tgrelid = c.oid
                         AND t.tgname <> %(trigger)s),
       c.relrowsecurity OR c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid)),
       EXISTS (SELECT
                 FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
                WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
           OR EXISTS (SELECT
                        FROM pg_attribute AS k
                       CROSS JOIN LATERAL aclexplode(k.attacl) AS a
                       WHERE k.attrelid = c.oid
                         AND a.privilege_type IN ('INSERT', 'UPDATE')),
       ARRAY(SELECT k.attname FROM pg_attribute AS k
              WHERE k.attrelid = c.oid AND k.attnum > 0 AND NOT k.attisdropped ORDER BY 1)
           <> ARRAY(SELECT k.attname FROM pg_attribute AS k
                     WHERE k.attrelid = %(view)s AND k.attnum > 0 AND NOT k.attisdropped ORDER BY 1),
       EXISTS (SELECT
                 FROM pg_rewrite AS w
                 JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                WHERE w.ev_class = %(view)s
                  AND d.refclassid = 'pg_class'::regclass
                  AND d.refobjid NOT IN (c.oid, w.ev_class)),
       EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = %(view)s AND w.rulename <> '_RETURN')
           OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = %(view)s),
       EXISTS (SELECT
                 FROM pg_class AS v
                CROSS JOIN LATERAL aclexplode(v.relacl) AS a
                WHERE v.oid = %(view)s
                  AND a.grantee <> v.relowner
                  AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
  FROM pg_class AS c
 WHERE c.oid = to_regclass(%(release)s)
