-- Read the promise of a published relation: the models and the roles of its columns, NULL for other relations.
CREATE OR REPLACE FUNCTION dbanon.promise(relation regclass)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT substr(c.comment, length('dbanon: ') + 1)::jsonb
      FROM obj_description(relation, 'pg_class') AS c (comment)
     WHERE c.comment LIKE 'dbanon: {%'
$function$;

COMMENT ON FUNCTION dbanon.promise(regclass) IS
    'The promise that dbanon wrote into the comment of a published relation.';
