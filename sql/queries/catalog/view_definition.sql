-- What a view stands for, and how it is secured.
SELECT pg_get_viewdef(c.oid) || coalesce(array_to_string(c.reloptions, ','), '')
  FROM pg_class AS c
 WHERE c.oid = %s
