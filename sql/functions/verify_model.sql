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
    WHEN 'k-anonymity' THEN
        RETURN QUERY SELECT c.required::double precision, c.achieved::double precision, c.classes,
                            c.failing_classes, c.row_count, c.verdict FROM dbanon.check_k_anonymity(
                 relation, quasi_identifiers, (params ->> 'k')::integer) AS c;
    WHEN 'l-diversity' THEN
        RETURN QUERY SELECT c.required::double precision, c.achieved::double precision, c.classes,
                            c.failing_classes, c.row_count, c.verdict FROM dbanon.check_l_diversity(
                 relation, quasi_identifiers, sensitive, (params ->> 'l')::integer) AS c;
    WHEN 'probabilistic-l-diversity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_probabilistic_l_diversity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'l')::double precision);
    WHEN 'entropy-l-diversity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_entropy_l_diversity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'l')::double precision);
    WHEN 'recursive-l-diversity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_recursive_l_diversity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'c')::double precision, (params ->> 'l')::integer);
    WHEN 'pd-recursive-l-diversity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_pd_recursive_l_diversity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'c')::double precision, (params ->> 'l')::integer,
                 ARRAY(SELECT jsonb_array_elements_text(params -> 'positive')));
    WHEN 'npd-recursive-l-diversity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_npd_recursive_l_diversity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'c')::double precision, (params ->> 'l')::integer,
                 ARRAY(SELECT jsonb_array_elements_text(params -> 'positive')),
                 (params ->> 'share')::double precision,
                 ARRAY(SELECT jsonb_array_elements_text(params -> 'negative')));
    WHEN 'alpha-k-anonymity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_alpha_k_anonymity(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'alpha')::double precision);
    WHEN 'p-sensitivity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_p_sensitivity(
                 relation, quasi_identifiers, sensitive, (params ->> 'p')::integer);
    WHEN 't-closeness' THEN
        RETURN QUERY SELECT * FROM dbanon.check_t_closeness(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 't')::double precision,
                 coalesce(params ->> 'distance', 'equal'), tree);
    WHEN 'n-t-closeness' THEN
        RETURN QUERY SELECT * FROM dbanon.check_n_t_closeness(
                 relation, quasi_identifiers, sensitive, (params ->> 'n')::integer,
                 (params ->> 't')::double precision,
                 coalesce(params ->> 'distance', 'equal'), tree);
    WHEN 'beta-likeness' THEN
        RETURN QUERY SELECT * FROM dbanon.check_beta_likeness(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'beta')::double precision,
                 coalesce(params ->> 'kind', 'basic'));
    WHEN 'delta-disclosure' THEN
        RETURN QUERY SELECT * FROM dbanon.check_delta_disclosure(
                 relation, quasi_identifiers, sensitive,
                 (params ->> 'delta')::double precision);
    WHEN 'k-e-anonymity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_k_e_anonymity(
                 relation, quasi_identifiers, sensitive, (params ->> 'k')::integer,
                 (params ->> 'e')::double precision);
    WHEN 'm-uniqueness' THEN
        RETURN QUERY SELECT * FROM dbanon.check_m_uniqueness(
                 relation, quasi_identifiers, sensitive, (params ->> 'm')::integer);
    WHEN 'x-y-anonymity' THEN
        RETURN QUERY SELECT * FROM dbanon.check_x_y_anonymity(
                 relation,
                 CASE WHEN params ? 'x' THEN ARRAY(SELECT jsonb_array_elements_text(params -> 'x'))
                      ELSE ARRAY(SELECT q.name FROM unnest(quasi_identifiers)
                                        WITH ORDINALITY AS q (name, place)
                                  WHERE NOT params -> 'y' ? q.name ORDER BY q.place) END,
                 ARRAY(SELECT jsonb_array_elements_text(params -> 'y')),
                 (params ->> 'k')::integer);
    WHEN 'k-map', 'delta-presence' THEN
        -- Who reads the relation does not read the population: dbanon check proves these.
        RETURN QUERY SELECT (params ->> CASE model WHEN 'k-map' THEN 'k' ELSE 'dmax' END)::double precision,
                            NULL::double precision, 0::bigint, 0::bigint, 0::bigint, 'not checked'::text;
    ELSE
        RAISE EXCEPTION 'there is no privacy model %', quote_literal(model)
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
END
$function$;

COMMENT ON FUNCTION dbanon.verify_model(regclass, text, text[], text, jsonb, jsonb) IS
    'One row: what the check of a model finds in a relation.';
