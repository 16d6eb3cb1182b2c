-- Verify a model by its check.
    WHEN {model} THEN
        RETURN QUERY
        SELECT c.required::double precision, c.achieved::double precision, c.classes,
               c.failing_classes, c.row_count, c.verdict
          FROM dbanon.{check}(relation, {arguments}) AS c;
