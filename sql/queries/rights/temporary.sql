-- Whether a role may make temporary tables in this database, and the name of the database.
SELECT has_database_privilege(%s::name, current_database(), 'TEMPORARY'), current_database()::text
