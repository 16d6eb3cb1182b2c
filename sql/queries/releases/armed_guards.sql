-- How many of the triggers that a live view needs stand armed as it needs them.
SELECT count(*)
  FROM unnest(%s::oid[], %s::text[], %s::text[]) AS needed (relation, name, mode)
  JOIN pg_trigger AS t ON t.tgrelid = needed.relation AND t.tgname = needed.name
 WHERE t.tgenabled = left(needed.mode, 1)::"char"
