-- What a model of the rows of classes reads.
classes AS (
    SELECT * FROM dbanon.classes(relation, quasi_identifiers, '{{}}')
)
