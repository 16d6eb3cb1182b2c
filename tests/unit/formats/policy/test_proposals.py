"""How a quasi-identifier is proposed to be published."""

import pytest

from dbanon.anonymization.registry import RECODINGS
from dbanon.domain.policy import ColumnRule, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, ColumnStats
from dbanon.formats.suggestions import propose

FEW, MANY = ColumnStats(1000, 0, 5), ColumnStats(1000, 0, 90)


def unique(spread):
    return ColumnStats(1000, 0, 990, spread)


def column(name, kind):
    return ColumnInfo(name, kind.value, kind.value, kind)


@pytest.mark.parametrize(
    ("name", "kind", "stats", "recoding", "floor"),
    [
        ("age", ColumnKind.INTEGER, MANY, "interval", {}),
        ("wage", ColumnKind.DECIMAL, FEW, "interval", {}),
        ("admitted", ColumnKind.DATE, MANY, "interval", {}),
        ("born", ColumnKind.DATE, MANY, "interval", {"at_least": "year"}),
        ("admitted", ColumnKind.TIMESTAMP, MANY, "interval", {"at_least": "day"}),
        ("admitted", ColumnKind.TIMESTAMPTZ, None, "interval", {"at_least": "day"}),
        ("dob", ColumnKind.TIMESTAMP, MANY, "interval", {"at_least": "year"}),
        ("wage", ColumnKind.DECIMAL, unique(31_400.0), "interval", {"bands": 5_000}),
        ("wage", ColumnKind.INTEGER, unique(12_000.0), "interval", {"bands": 1_000}),
        ("wage", ColumnKind.FLOAT, unique(0.3), "interval", {"bands": 0.05}),
        ("wage", ColumnKind.INTEGER, unique(12.0), "interval", {}),
        ("wage", ColumnKind.DECIMAL, unique(0.0), "interval", {}),
        ("wage", ColumnKind.DECIMAL, unique(float("inf")), "interval", {}),
        ("wage", ColumnKind.DECIMAL, unique(float("nan")), "interval", {}),
        ("wage", ColumnKind.DECIMAL, unique(None), "interval", {}),
        ("zip", ColumnKind.CATEGORY, MANY, "label", {"at_least": 3}),
        ("zip", ColumnKind.INTEGER, MANY, "interval", {"bands": 100}),
        ("grade", ColumnKind.ORDINAL, FEW, "set", {}),
        ("smoker", ColumnKind.BOOLEAN, ColumnStats(1000, 0, 2), "label", {}),
        ("race", ColumnKind.CATEGORY, FEW, "set", {}),
        ("city", ColumnKind.CATEGORY, MANY, "label", {}),
        ("city", ColumnKind.CATEGORY, None, "label", {}),
    ],
)
def test_a_recoding_is_proposed_by_what_the_values_are(name, kind, stats, recoding, floor):
    found = propose(column(name, kind), stats)
    assert (recoding, floor) == (found.recoding, found.floor)
    assert (True, bool(floor)) == (bool(found.reason), bool(found.why))


@pytest.mark.parametrize("kind", [kind for kind in ColumnKind if kind.can_be_quasi])
@pytest.mark.parametrize("stats", [None, FEW, MANY])
@pytest.mark.parametrize("name", ["a", "zip", "dob"])
def test_what_is_proposed_can_publish_the_column(name, kind, stats):
    found = propose(column(name, kind), stats)
    structure = ColumnRule(name, Role.QUASI, found.recoding).structure(kind)
    assert structure in RECODINGS[found.recoding].accepts
