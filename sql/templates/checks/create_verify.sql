-- Prove everything that a published relation promises in its comment, with the rights of whoever asks.
CREATE OR REPLACE FUNCTION dbanon.verify(relation regclass)
RETURNS TABLE (
    model text,
    sensitive text,
    parameters jsonb,
    required double precision,
    achieved double precision,
    classes bigint,
    failing_classes bigint,
    row_count bigint,
    verdict text
)
LANGUAGE plpgsql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    promise jsonb;
    all_quasi text[];
    all_sensitive text[];
    of_columns text[] := {of_columns};
    of_links text[] := {of_links};
    asked record;
BEGIN
    promise := dbanon.promise(relation);
    IF promise IS NULL THEN
        RAISE EXCEPTION '% carries no promise of dbanon''s to verify', verify.relation
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The sensitive values of buckets are in the relation beside this one, of which no other check knows.
    IF promise -> 'anatomy' = 'true' THEN
        RETURN QUERY
        SELECT m.model ->> 'name', s.name, m.model -> 'params', c.*
          FROM jsonb_array_elements(promise -> 'models') AS m (model)
         CROSS JOIN jsonb_array_elements_text(promise -> 'sensitive') AS s (name)
         CROSS JOIN LATERAL dbanon.check_anatomy(
                   verify.relation,
                   s.name,
                   CASE m.model ->> 'name' WHEN 'probabilistic-l-diversity'
                        THEN (m.model -> 'params' ->> 'l')::double precision END) AS c;
        IF NOT FOUND THEN
            RAISE EXCEPTION '% promises no model', verify.relation
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        RETURN;
    END IF;
    all_quasi := ARRAY(SELECT jsonb_array_elements_text(promise -> 'quasi'));
    all_sensitive := ARRAY(SELECT jsonb_array_elements_text(promise -> 'sensitive'));

    -- A model about sensitive values is asked of its columns, or of all of them; judged strictly,
    -- the other sensitive columns join the quasi-identifier. One scan answers k-anonymity and the
    -- first question of distinct l-diversity about the same classes, its partner.
    FOR asked IN
        WITH question AS (
            SELECT m.position,
                   c.place,
                   m.model ->> 'name' AS name,
                   coalesce(m.model -> 'params', '{{}}') AS params,
                   c.name AS column_name,
                   CASE WHEN m.model -> 'params' ->> 'multi' = 'strict'
                        THEN all_quasi || array_remove(all_sensitive, c.name)
                        ELSE all_quasi END AS quasi,
                   promise -> 'trees' -> c.name AS tree
              FROM jsonb_array_elements(promise -> 'models') WITH ORDINALITY AS m (model, position)
             CROSS JOIN LATERAL (
                   SELECT CASE WHEN m.model ->> 'name' = ANY (of_links)
                               THEN (SELECT string_agg(y.name, ', ' ORDER BY y.place)
                                       FROM jsonb_array_elements_text(m.model -> 'params' -> 'y')
                                            WITH ORDINALITY AS y (name, place)) END AS name,
                          0::bigint AS place
                    WHERE m.model ->> 'name' <> ALL (of_columns)
                    UNION ALL
                   SELECT s.name, s.place
                     FROM unnest(CASE WHEN m.model -> 'params' ? 'columns'
                                      THEN ARRAY(SELECT jsonb_array_elements_text(
                                                            m.model -> 'params' -> 'columns'))
                                      ELSE all_sensitive END) WITH ORDINALITY AS s (name, place)
                    WHERE m.model ->> 'name' = ANY (of_columns)) AS c
        ),
        partner AS (
            SELECT q.position, q.place, q.name, q.column_name, q.params
              FROM question AS q
             WHERE q.name = 'l-diversity'
               AND q.quasi = all_quasi
               AND EXISTS (SELECT FROM question AS k
                            WHERE k.name = 'k-anonymity' AND k.params - 'k' = '{{}}')
             ORDER BY q.position, q.place
             LIMIT 1
        )
        SELECT q.*, p.name AS partner, p.column_name AS partner_column, p.params AS partner_params
          FROM question AS q
          LEFT JOIN partner AS p ON q.name = 'k-anonymity' AND q.params - 'k' = '{{}}'
         WHERE NOT EXISTS (SELECT FROM partner AS o
                            WHERE o.position = q.position AND o.place = q.place)
         ORDER BY q.position, q.place
    LOOP
        IF asked.partner IS NULL THEN
            RETURN QUERY
            SELECT asked.name, asked.column_name, asked.params, v.*
              FROM dbanon.verify_model(verify.relation, asked.name, asked.quasi, asked.column_name,
                                       asked.params, asked.tree) AS v;
        ELSE
            RETURN QUERY
            SELECT v.model,
                   CASE v.model WHEN asked.partner THEN asked.partner_column END,
                   CASE v.model WHEN asked.partner THEN asked.partner_params ELSE asked.params END,
                   v.required::double precision,
                   v.achieved::double precision,
                   v.classes,
                   v.failing_classes,
                   v.row_count,
                   v.verdict
              FROM dbanon.check_k_and_l(verify.relation, asked.quasi,
                                        (asked.params ->> 'k')::integer, asked.partner_column,
                                        (asked.partner_params ->> 'l')::integer) AS v;
        END IF;
    END LOOP;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% promises no model', verify.relation
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$function$;

COMMENT ON FUNCTION dbanon.verify(regclass) IS
    'Checks every model that a relation published by dbanon promises; needs SELECT on the relation only.';
