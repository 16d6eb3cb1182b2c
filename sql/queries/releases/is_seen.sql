-- Whether the transaction's snapshot still shows a relation, or a column of it. What it dropped is
-- gone from it, unless another transaction changed rights on it after the snapshot was taken.
SELECT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = %(relation)s)
    OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = %(relation)s)
