-- The functions that check privacy models and verify releases.

-- name: all_other_columns
-- All quasi-identifiers that are in no other list of columns.
ARRAY(SELECT q.name FROM unnest(quasi_identifiers) WITH ORDINALITY AS q (name, place)
       WHERE NOT params -> {others} ? q.name ORDER BY q.place)

-- name: create_check
-- Create the check of a privacy model, whose fragment computes the achieved value of each class. A class that it
-- cannot compare fails.
CREATE OR REPLACE FUNCTION dbanon.{check}(
    {arguments}
)
RETURNS TABLE (
    required {of_required},
    achieved {of_achieved},
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
BEGIN
    IF NOT coalesce({allowed}, false) THEN
        RAISE EXCEPTION {refusal}
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
{judged};
END
$function$;

COMMENT ON FUNCTION dbanon.{check}({types}) IS {sentence};

-- name: create_verify
-- Prove the promise in the comment of a published relation, with the rights of the caller.
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
LANGUAGE sql
STABLE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $function$
SELECT v.* FROM dbanon.verify_promise(relation, dbanon.promise(relation)) AS v
$function$;

COMMENT ON FUNCTION dbanon.verify(regclass) IS
    'Checks every model that a relation published by dbanon promises; needs SELECT on the relation only.';

-- name: create_verify_model
-- Run the check of one model by its name, with the parameters that a policy gives it.
CREATE OR REPLACE FUNCTION dbanon.verify_model(
    relation regclass,
    model text,
    quasi_identifiers text[],
    sensitive text,
    params jsonb,
    tree jsonb
)
RETURNS TABLE (
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
#variable_conflict use_variable
BEGIN
    -- Every name is spelled out: a promise is text that somebody wrote, and names no function.
    CASE model
{cases}
    ELSE
        RAISE EXCEPTION 'there is no privacy model %', quote_literal(model)
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
END
$function$;

COMMENT ON FUNCTION dbanon.verify_model(regclass, text, text[], text, jsonb, jsonb) IS
    'One row: what the check of a model finds in a relation.';

-- name: create_verify_promise
-- Prove each model of a promise, which has the form of a published relation's comment, in one call.
CREATE OR REPLACE FUNCTION dbanon.verify_promise(relation regclass, promise jsonb)
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
    all_quasi text[];
    all_sensitive text[];
    of_columns text[] := {of_columns};
    of_links text[] := {of_links};
    asked record;
BEGIN
    IF promise IS NULL THEN
        RAISE EXCEPTION '% carries no promise of dbanon''s to verify', verify_promise.relation
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The sensitive values of buckets are in the relation beside this one, of which no other check knows.
    IF promise -> 'anatomy' = 'true' THEN
        RETURN QUERY
        SELECT m.model ->> 'name', s.name, m.model -> 'params', c.*
          FROM jsonb_array_elements(promise -> 'models') AS m (model)
         CROSS JOIN jsonb_array_elements_text(promise -> 'sensitive') AS s (name)
         CROSS JOIN LATERAL dbanon.check_anatomy(
                   verify_promise.relation,
                   s.name,
                   CASE m.model ->> 'name' WHEN 'probabilistic-l-diversity'
                        THEN (m.model -> 'params' ->> 'l')::double precision END) AS c;
        IF NOT FOUND THEN
            RAISE EXCEPTION '% promises no model', verify_promise.relation
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
               AND EXISTS (SELECT FROM question AS k WHERE k.name = 'k-anonymity')
             ORDER BY q.position, q.place
             LIMIT 1
        )
        SELECT q.*, p.name AS partner, p.column_name AS partner_column, p.params AS partner_params
          FROM question AS q
          LEFT JOIN partner AS p ON q.name = 'k-anonymity'
         WHERE NOT EXISTS (SELECT FROM partner AS o
                            WHERE o.position = q.position AND o.place = q.place)
         ORDER BY q.position, q.place
    LOOP
        IF asked.partner IS NULL THEN
            RETURN QUERY
            SELECT asked.name, asked.column_name, asked.params, v.*
              FROM dbanon.verify_model(verify_promise.relation, asked.name, asked.quasi, asked.column_name,
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
              FROM dbanon.check_k_and_l(verify_promise.relation, asked.quasi,
                                        (asked.params ->> 'k')::integer, asked.partner_column,
                                        (asked.partner_params ->> 'l')::integer) AS v;
        END IF;
    END LOOP;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% promises no model', verify_promise.relation
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$function$;

COMMENT ON FUNCTION dbanon.verify_promise(regclass, jsonb) IS
    'Checks every model of a promise, which need not be that of the relation''s comment.';

-- name: input_of_classes
-- The input of a model of the rows of classes.
classes AS (
    SELECT * FROM dbanon.classes(relation, quasi_identifiers, '{{}}')
)

-- name: input_of_links
-- The input of a model that links columns x to columns y.
classes AS (
    SELECT * FROM dbanon.classes(relation, x, y)
)

-- name: input_of_population
-- The input of a model of a population.
presence AS (
    SELECT * FROM dbanon.presence(relation, quasi_identifiers, population, trees)
)

-- name: input_of_sensitive
-- The input of a model of a sensitive column: cells, or classes if counts are enough, which is faster.
cells AS (
    SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
),
classes AS (
    SELECT * FROM dbanon.classes(relation, quasi_identifiers, ARRAY[sensitive])
)

-- name: judge
-- Judge the classes by their achieved values, which the fragment of a model computes from its input.
WITH {input},
{arithmetic}
SELECT {run}({required})::{of_required},
       CASE WHEN count(e.class) > 0 THEN {worst} END::{of_achieved},
       count(e.class),
       CASE WHEN count(e.class) > 0
            THEN count(*) FILTER (WHERE {fails})
            ELSE 0 END,
       coalesce(sum(e.members), 0)::bigint,
       CASE WHEN count(e.class) = 0 THEN 'not checked'
            WHEN bool_or({fails}) THEN 'failed'
            ELSE 'passed' END
  FROM each_class AS e{by_run}

-- name: verify_case
-- Verify a model by its check.
    WHEN {model} THEN
        RETURN QUERY
        SELECT c.required::double precision, c.achieved::double precision, c.classes,
               c.failing_classes, c.row_count, c.verdict
          FROM dbanon.{check}(relation, {arguments}) AS c;

-- name: verify_population
-- Leave a model unverified: readers of the relation cannot read the population.
    WHEN {model} THEN
        RETURN QUERY
        SELECT {required}::double precision, NULL::double precision, 0::bigint, 0::bigint, 0::bigint,
               'not checked'::text;
