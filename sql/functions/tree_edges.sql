-- List the edges from each leaf of a tree up to its root, and half of what crossing each one costs.
CREATE OR REPLACE FUNCTION dbanon.tree_edges(tree jsonb)
RETURNS TABLE (
    leaf integer,
    node bigint,
    weight double precision
)
LANGUAGE sql
IMMUTABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
    -- {"parent": [-1, 0, ...], "leaves": {"flu": 2, ...}}: nodes are places in the first list. The
    -- height of a node is its longest way down to a leaf.
    WITH RECURSIVE nodes AS (
        SELECT (p.position - 1)::integer AS node, p.parent::integer AS parent
          FROM jsonb_array_elements_text(tree -> 'parent') WITH ORDINALITY AS p (parent, position)
    ),
    up (leaf, node, parent, steps) AS (
        SELECT n.node, n.node, n.parent, 0
          FROM jsonb_each_text(tree -> 'leaves') AS l (label, node)
          JOIN nodes AS n ON n.node = l.node::integer
         UNION ALL
        SELECT u.leaf, n.node, n.parent, u.steps + 1
          FROM up AS u
          JOIN nodes AS n ON n.node = u.parent
    ),
    heights AS (
        SELECT u.node, max(u.steps)::double precision AS height
          FROM up AS u
         GROUP BY u.node
    )
    SELECT u.leaf, u.node::bigint, (above.height - here.height) / (2 * root.height)
      FROM up AS u
      JOIN heights AS here ON here.node = u.node
      JOIN heights AS above ON above.node = u.parent
      JOIN heights AS root ON root.node = 0
$function$;

COMMENT ON FUNCTION dbanon.tree_edges(jsonb) IS
    'The edges above each leaf of a taxonomy, for the hierarchical distance of t-closeness.';
