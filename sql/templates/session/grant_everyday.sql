-- What an ordinary role needs to publish; the grant options let it hand releases to readers.
GRANT USAGE ON SCHEMA dbanon TO {role} WITH GRANT OPTION;
GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {role};
GRANT INSERT, UPDATE, DELETE ON dbanon.taxonomy, dbanon.taxonomy_node, dbanon.policy, dbanon.release TO {role};
GRANT INSERT, UPDATE ON dbanon.publishing TO {role};
GRANT INSERT ON dbanon.verification, dbanon.policy_version, dbanon.spending TO {role};
GRANT INSERT ON dbanon.history, dbanon.history_figures, dbanon.history_key, dbanon.history_member, dbanon.history_value TO {role};
GRANT INSERT, DELETE ON dbanon.history_leaver TO {role};
GRANT DELETE ON dbanon.history_figures TO {role};
GRANT INSERT, UPDATE, DELETE ON dbanon.schedule, dbanon.job TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA dbanon TO {role};
GRANT USAGE, CREATE ON SCHEMA dbanon_data TO {role};
GRANT USAGE, CREATE ON SCHEMA {views} TO {role} WITH GRANT OPTION;

-- And for each table that is to be published, with names of your own:
--   GRANT USAGE ON SCHEMA clinic TO publisher;
--   GRANT SELECT ON clinic.patients TO publisher;
-- And, where TEMPORARY was revoked from PUBLIC, by the owner of the database:
--   GRANT TEMPORARY ON DATABASE clinic TO publisher;
