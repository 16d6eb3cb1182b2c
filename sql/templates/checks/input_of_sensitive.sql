-- What a model of a sensitive column reads: cells, or where counting is enough, which takes less time, classes.
cells AS (
    SELECT * FROM dbanon.tally(relation, quasi_identifiers, sensitive)
),
classes AS (
    SELECT * FROM dbanon.classes(relation, quasi_identifiers, ARRAY[sensitive])
)
