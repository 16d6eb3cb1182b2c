-- Leave a model unverified: who reads the relation does not read the population.
    WHEN {model} THEN
        RETURN QUERY
        SELECT {required}::double precision, NULL::double precision, 0::bigint, 0::bigint, 0::bigint,
               'not checked'::text;
