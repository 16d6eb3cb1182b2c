import pytest

from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.formats.datasets import Dataset, dataset_of, parse


def test_a_file_names_the_persons_and_their_tables():
    found = parse('persons = "public.persons"\ntables = ["encounters", "\\"My Table\\""]\n')
    assert found == Dataset(
        TableName("public", "persons"),
        (TableName(None, "encounters"), TableName(None, "My Table")),
    )
    assert found.names == (found.persons, *found.tables)


def test_every_problem_of_a_file_is_told_at_once():
    with pytest.raises(ConfigError) as failed:
        parse('person = "p"\ntables = [1]\n')
    text = str(failed.value)
    assert "persons: is missing" in text
    assert "person: unknown key; did you mean persons?" in text
    assert "tables: must be a list of strings" in text


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["persons"], "no table beside that of the persons"),
        (["persons", "visits", "visits"], "names visits twice"),
        (["persons", "a.b.c"], "is not a table name"),
    ],
)
def test_tables_that_are_no_dataset(names, why):
    with pytest.raises(ConfigError, match=why):
        dataset_of(names)
