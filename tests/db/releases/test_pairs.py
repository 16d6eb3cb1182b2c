"""Ranges that readers see as two columns: two labels are never the same two values."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from builders import encoded
from psycopg import sql

from dbanon.anonymization.registry import RECODINGS
from dbanon.db.releases.publication import pair
from dbanon.domain.assignment import Assignment
from dbanon.domain.table import ColumnKind

DAYS = [date(1, 1, 1), *(date(2020, 1, day) for day in range(1, 6)), date(9999, 12, 31)]
MOMENTS = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=step) for step in range(6)]
MOMENTS += [datetime(2020, 3, 29, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)]
CASES = {
    "int4range": (ColumnKind.INTEGER, [-(2**31), -1, 0, 1, 2, 2**31 - 2, 2**31 - 1], {}),
    "int8range": (ColumnKind.INTEGER, [-(2**63), -1, 0, 1, 2, 2**63 - 2, 2**63 - 1], {}),
    "numrange": (ColumnKind.FLOAT, [-1e300, -0.5, 0.1, 0.2, 0.3, 1e15, 1e300], {}),
    "daterange": (ColumnKind.DATE, DAYS, {}),
    "tsrange": (ColumnKind.TIMESTAMP, [moment.replace(tzinfo=None) for moment in MOMENTS], {}),
    "tstzrange": (ColumnKind.TIMESTAMPTZ, MOMENTS, {}),
    "int4range in bands": (ColumnKind.INTEGER, [-5, 0, 9, 10, 2**31 - 1], {"bands": 10.0}),
    "daterange in days": (ColumnKind.DATE, DAYS[1:], {"at_least": "day"}),
    "daterange in months": (ColumnKind.DATE, DAYS, {"at_least": "month"}),
    "tsrange in weeks": (
        ColumnKind.TIMESTAMP,
        [moment.replace(tzinfo=None) for moment in MOMENTS[:-1]],
        {"at_least": "week"},
    ),
}


@pytest.mark.parametrize("recoding", ["bounds", "center"])
@pytest.mark.parametrize("case", CASES)
def test_labels_are_what_readers_of_two_columns_tell_apart(database, case, recoding):
    kind, values, rule = CASES[case]
    stored = case.split()[0]
    present = [*values, None]
    pairs = [(a, b) for i, a in enumerate(present) for b in present[i:]]
    column = encoded(
        {"x": [value for both in pairs for value in both]}, kinds={"x": kind}, rules={"x": rule}
    ).quasi[0]
    if stored == "int4range":
        column = replace(column, greatest=2**31 - 1)
    groups = Assignment(np.repeat(np.arange(len(pairs)), 2).astype(np.int32), len(pairs))
    found = RECODINGS[recoding].publish(column, groups)
    first, second = pair(recoding, stored, sql.SQL("r.x"))
    statement = sql.SQL("SELECT ({})::text, ({})::text FROM (SELECT {}::{} AS x) AS r")
    served = {}
    for label in found.labels:
        (row,) = database.execute(
            statement.format(first, second, sql.Literal(label), sql.SQL(stored))
        )
        served[label] = row
    assert len(served) == len({*served.values()})
    for (a, b), index in zip(pairs, found.index.tolist(), strict=True):
        held = [value for value in (a, b) if value is not None]
        range_of = sql.SQL("SELECT {}::{}").format(
            sql.Literal(found.labels[index]), sql.SQL(stored)
        )
        if len(held) < 2:
            assert (None, None) == served[found.labels[index]]
            continue
        inside = " AND ".join("({range}) @> %s::{of}" for _ in held)
        text = inside.format(range=range_of.as_string(), of=of_element(stored))
        assert [(True,)] == database.execute(f"SELECT {text}", [str(value) for value in held])


def of_element(stored):
    return {
        "int4range": "int4",
        "int8range": "int8",
        "numrange": "numeric",
        "daterange": "date",
        "tsrange": "timestamp",
        "tstzrange": "timestamptz",
    }[stored]
