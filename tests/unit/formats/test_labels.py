"""The labelled schemas can be read, and rows can be generated for each."""

import pytest
from data.schemas.labelled import HELD_OUT, read

from dbanon.domain.policy import Role

TABLES = read()


def test_at_least_ten_schemas_are_labelled_and_six_are_held_out():
    schemas = {table.schema for table in TABLES.values()}
    assert len(schemas - HELD_OUT) >= 10
    assert len(HELD_OUT & schemas) == 6


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_a_role_and_values_for_each_column(name):
    table = TABLES[name]
    rows = table.rows()
    assert table.rows() == rows
    assert {*table.key} <= {*rows} | {"row_id", "id"}
    for column in table.columns:
        values = rows[column.info.name]
        assert Role(column.role) is not Role.INSENSITIVE
        assert column.kind in {"number", "date", "category"}
        assert len({*values} - {None}) <= min(column.distinct, len(values))
        assert not any(value == "" for value in values)
