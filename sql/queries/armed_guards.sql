-- How many of the triggers that a live view needs stand armed, replicated changes included.
SELECT count(*)
  FROM unnest(%s::oid[], %s::text[]) AS needed (relation, name)
  JOIN pg_trigger AS t ON t.tgrelid = needed.relation AND t.tgname = needed.name
 WHERE t.tgenabled = 'A'
