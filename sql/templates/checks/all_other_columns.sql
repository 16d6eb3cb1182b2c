-- All quasi-identifiers that are in no other list of columns.
ARRAY(SELECT q.name FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, place)
       WHERE NOT params -> {others} ? q.name ORDER BY q.place)
