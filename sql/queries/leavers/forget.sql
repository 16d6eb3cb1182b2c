-- Forget since when those are gone whom a relation shows.
DELETE FROM dbanon.history_leaver AS l
 WHERE l.relation_schema = %(schema)s
   AND l.relation_name = %(name)s
