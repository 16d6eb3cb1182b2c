-- Whether another transaction changed rights on a relation, or a column of it, after this snapshot was
-- taken: then the snapshot shows the version before, beside the one that this transaction wrote, or
-- though this transaction has dropped the relation. written: 1 if each has such a version, else 0.
SELECT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = %(relation)s HAVING count(*) > %(written)s)
    OR EXISTS (SELECT
                 FROM pg_attribute AS a
                WHERE a.attrelid = %(relation)s
                  AND a.attnum > 0
                GROUP BY a.attnum
               HAVING count(*) > %(written)s)
