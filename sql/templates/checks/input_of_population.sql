-- What a model of a population reads.
presence AS (
    SELECT * FROM dbanon.presence(relation, quasi_identifiers, population, trees)
)
