-- How many guards of a release stand armed on its source, replicated changes included.
SELECT count(*)
  FROM pg_trigger
 WHERE tgrelid = %s
   AND tgname = ANY (%s)
   AND tgenabled = 'A'
