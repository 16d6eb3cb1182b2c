-- Begin the history of policies with what is stored.
INSERT INTO dbanon.policy_version (table_schema, table_name, name, version, document)
SELECT p.table_schema, p.table_name, p.name, 1, p.document
  FROM dbanon.policy AS p
