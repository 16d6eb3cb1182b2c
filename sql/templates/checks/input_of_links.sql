-- What a model that links columns x to columns y reads.
classes AS (
    SELECT * FROM dbanon.classes(relation, x, y)
)
