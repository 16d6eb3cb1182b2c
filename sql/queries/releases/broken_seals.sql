-- What is no longer as publishing left it: each column tells one way in which a private copy was opened,
-- or its view changed. Servers before 16 spell the columns of a view with the alias of their relation.
SELECT c.reloftype = 0,
       NOT EXISTS (SELECT
                     FROM pg_trigger AS t
                    WHERE t.tgrelid = c.oid
                      AND t.tgname = %(trigger)s
                      AND t.tgenabled = 'A'
                      AND t.tgtype = 62
                      AND t.tgqual IS NULL
                      AND t.tgfoid = to_regprocedure('dbanon.refuse_change()')),
       EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid)
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
       o.is_ours IS NOT TRUE,
       NOT EXISTS (SELECT
                     FROM pg_proc AS p
                    WHERE p.pronamespace = c.relnamespace
                      AND p.proname = %(seen)s
                      AND p.pronargs = 0
                      AND p.proowner = c.relowner
                      AND p.prosecdef
                      AND p.provolatile = 's'
                      AND p.proconfig = ARRAY['search_path=pg_catalog, pg_temp']
                      AND p.prosrc = %(body)s),
       EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = %(view)s AND w.rulename <> '_RETURN')
           OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = %(view)s),
       EXISTS (SELECT
                 FROM pg_class AS v
                CROSS JOIN LATERAL aclexplode(v.relacl) AS a
                WHERE v.oid = %(view)s
                  AND a.grantee <> v.relowner
                  AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
  FROM pg_class AS c
 CROSS JOIN LATERAL (
       SELECT bool_or(v.text = regexp_replace(v.published, '\s+', ' ', 'g'))
         FROM (SELECT regexp_replace(pg_get_viewdef(%(view)s::oid), '\s+', ' ', 'g'),
                      format(' SELECT %%s FROM ONLY %%s s WHERE dbanon_data.%%s();',
                             string_agg(p.prefix || quote_ident(k.attname), ', ' ORDER BY k.attnum),
                             c.oid::regclass, %(seen)s::text)
                 FROM unnest(ARRAY['', 's.']) AS p (prefix)
                CROSS JOIN pg_attribute AS k
                WHERE k.attrelid = %(view)s
                  AND k.attnum > 0
                  AND NOT k.attisdropped
                GROUP BY p.prefix) AS v (text, published)
       ) AS o (is_ours)
 WHERE c.oid = to_regclass(%(release)s)
