-- Enter a release among those whose persons are remembered.
INSERT INTO dbanon.history
    (release_id, table_schema, table_name, relation_schema, relation_name, person, key_id, series,
     several)
VALUES (%(release)s, %(schema)s, %(name)s, %(view_schema)s, %(view_name)s, %(person)s, %(key)s,
        %(series)s, %(several)s)
