-- Return the digest of a policy with its taxonomies, of given versions or the newest. It is what a role approves.
CREATE OR REPLACE FUNCTION dbanon.policy_digest(document jsonb, versions jsonb DEFAULT NULL)
RETURNS text
LANGUAGE sql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH named (name) AS (
        SELECT DISTINCT found #>> '{}'
          FROM jsonb_path_query(document, '$.columns[*].taxonomy') AS found
    ), nodes (node, name, place) AS (
        SELECT to_jsonb(n) - 'taxonomy_id', d.name, n.node_id
          FROM named AS d
         CROSS JOIN LATERAL (SELECT t.taxonomy_id
                               FROM dbanon.taxonomy AS t
                              WHERE t.name = d.name
                                AND (versions IS NULL OR t.version::text = versions ->> d.name)
                              ORDER BY t.version DESC
                              LIMIT 1) AS newest
          JOIN dbanon.taxonomy_node AS n ON n.taxonomy_id = newest.taxonomy_id
    )
    SELECT encode(sha256(convert_to(jsonb_build_array(
               document,
               (SELECT jsonb_agg(jsonb_build_array(n.name, n.node) ORDER BY n.name, n.place) FROM nodes AS n)
           )::text, 'UTF8')), 'hex')
$function$;

COMMENT ON FUNCTION dbanon.policy_digest(jsonb, jsonb) IS
    'The digest of a policy and its taxonomies, by which a role approves them.';
