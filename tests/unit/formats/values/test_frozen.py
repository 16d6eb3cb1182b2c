"""Values that were published go in the place of those of now."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from dbanon.domain.table import ColumnKind
from dbanon.formats.column_values import as_published, columns_of, freeze

KINDS = {"pain": ColumnKind.CATEGORY, "dose": ColumnKind.DECIMAL}
INFO = SimpleNamespace(column=lambda name: SimpleNamespace(kind=KINDS[name]))


def table(**columns):
    arrays = {n: pa.array(values, pa.string()).dictionary_encode() for n, values in columns.items()}
    return pa.table({n: pa.chunked_array([array]) for n, array in arrays.items()})


def frozen(columns, values, *, persons=None, shown=None):
    size = len(columns) if persons is None else max(persons) + 1
    return freeze(
        columns,
        INFO,
        persons=np.array(range(size) if persons is None else persons, np.int32),
        shown=np.array(range(size) if shown is None else shown, np.int32),
        values=values,
    )


def test_whose_values_changed_is_published_as_before():
    now = table(pain=["flu", "gout", None], dose=["1.5", "2", "3"])
    before = [
        [[{"pain": "flu", "dose": 1.5}]],
        [[{"pain": None, "dose": 20}]],
        [[{"pain": "cold", "dose": 3}]],
    ]
    found = frozen(now, before)
    assert [1, 2] == found.changed.tolist()
    assert ["flu", None, "cold"] == found.columns.column("pain").to_pylist()
    assert ["1.5", "20", "3"] == found.columns.column("dose").to_pylist()


def test_a_number_is_the_same_however_it_is_written():
    found = frozen(table(dose=["1e2", "1.0"]), [[[{"dose": 100}]], [[{"dose": 1}]]])
    assert ([], ["1e2", "1.0"]) == (found.changed.tolist(), found.columns["dose"].to_pylist())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (199.9, "199.9"),
        (1e22, "10000000000000000000000"),
        ("flu", "flu"),
        (date(2026, 3, 1), "2026-03-01"),
        (datetime(2026, 3, 1, 10, 20), "2026-03-01 10:20:00"),  # noqa: DTZ001
        (datetime(2026, 3, 1, 10, 20, 30, 120000), "2026-03-01 10:20:30.12"),  # noqa: DTZ001
        (datetime(2026, 3, 1, 10, 20, tzinfo=UTC), "2026-03-01 10:20:00+00"),
    ],
)
def test_a_quasi_identifier_is_written_as_the_database_does(value, text):
    column = pa.chunked_array([pa.array([value, None, value]).dictionary_encode()])
    found = as_published(pa.table({"a": column}))
    assert [text, None, text] == found["a"].to_pylist()


def test_who_was_never_published_is_published_as_now():
    found = frozen(table(pain=["flu", "gout"]), [[[{"pain": "cold"}]]], shown=[-1, 0])
    assert ["flu", "cold"] == found.columns.column("pain").to_pylist()


def test_a_column_that_was_never_published_is_that_of_now():
    found = frozen(table(pain=["flu"], dose=["1"]), [[[{"pain": "cold"}]]])
    assert [("cold",), ("1",)] == [tuple(c.to_pylist()) for c in found.columns.columns]


def test_the_first_release_that_showed_a_column_decides():
    values = [[[{"pain": "flu"}], [{"pain": "cold", "dose": 2}]]]
    found = frozen(table(pain=["gout"], dose=["1"]), values)
    assert [["flu"], ["2"]] == [column.to_pylist() for column in found.columns.columns]
    assert {"pain", "dose"} == columns_of(values[0])


@pytest.mark.parametrize(
    ("before", "unknown"),
    [
        ([{"pain": "flu"}, {"pain": "gout"}], False),
        ([{"pain": "gout"}, {"pain": "flu"}], False),
        ([{"pain": "flu"}, {"pain": "flu"}], True),
        ([{"pain": "flu"}], True),
        ([{"pain": "flu"}, {"pain": "gout"}, {"pain": "gout"}], True),
    ],
)
def test_of_several_rows_nobody_knows_which_had_which_value(before, unknown):
    found = frozen(table(pain=["flu", "gout"]), [[before]], persons=[0, 0])
    assert ([unknown], 0) == (found.unknown.tolist(), len(found.changed))


def test_a_person_of_one_row_who_had_several_is_unknown():
    found = frozen(table(pain=["flu"]), [[[{"pain": "flu"}, {"pain": "flu"}]]])
    assert [True] == found.unknown.tolist()


def test_a_policy_without_sensitive_columns_has_nothing_to_keep():
    empty = table(pain=["flu", "gout"]).select([])
    found = freeze(
        empty,
        INFO,
        persons=np.arange(2, dtype=np.int32),
        shown=np.array([0, 0], np.int32),
        values=[[[{"pain": "flu"}]]],
    )
    assert (0, [False, False]) == (len(found.changed), found.unknown.tolist())
