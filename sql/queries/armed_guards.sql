-- How many guards of a release stand armed on its source, replicated changes included.
SELECT count(*)
  FROM pg_trigger
 WHERE tgname LIKE %s
   AND tgenabled = 'A'
