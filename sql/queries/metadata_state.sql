-- Whether the metadata schema is installed, and the stamp it carries.
SELECT to_regclass('dbanon.alembic_version') IS NOT NULL,
       (SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'dbanon')
