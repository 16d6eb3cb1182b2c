"""Analysts read a release as a data frame, in types that they can work with at once."""

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from tables import make_patients, patients_policy

import dbanon
from dbanon.domain.policy import ColumnRule

RELATION = "anon.patients"
MORE = {
    "seen": ("timestamptz", "timestamptz '2024-01-01 10:00+02' + id % 9 * interval '1 day'"),
    "town": ("text", "(ARRAY['Ayr', 'Bute', 'Crail', NULL])[1 + id % 4]"),
    "ward": ("text", "(ARRAY['A', 'B'])[1 + id % 2]"),
    "remark": ("text", "CASE id % 3 WHEN 0 THEN '' WHEN 1 THEN E'a,\"b\"\\nc' END"),
    "visits": ("int", "nullif(id % 5, 0)"),
    "smokes": ("boolean", "(ARRAY[true, false, NULL])[1 + id % 3]"),
    "left_at": ("timestamp", "CASE id % 2 WHEN 0 THEN 'infinity' ELSE '2024-03-01' END::timestamp"),
}
ROLES = {
    "seen": {"role": dbanon.Role.QUASI},
    "town": {"role": dbanon.Role.QUASI},
    "ward": {"role": dbanon.Role.QUASI, "recoding": "set"},
}


def publish_patients(database):
    table = make_patients(database)
    for name, (kind, value) in MORE.items():
        database.execute(f"ALTER TABLE public.patients ADD {name} {kind}")
        database.execute(f"UPDATE public.patients SET {name} = {value}")
    policy = patients_policy(table)
    rules = [
        ColumnRule(name, **ROLES.get(name, {"role": dbanon.Role.INSENSITIVE})) for name in MORE
    ]
    policy = replace(policy, columns=(*policy.columns, *rules))
    dbanon.set_policy(table, policy, settings=database.settings)
    dbanon.publish(table, settings=database.settings)


@pytest.fixture
def patients(copied):
    """Return a database with a release of columns of many types."""
    return copied(publish_patients)


@pytest.mark.exhaustive
def test_a_frame_has_the_values_that_sql_shows(patients):
    frame = dbanon.read(RELATION, settings=patients.settings)
    ((rows,),) = patients.execute(f"SELECT count(*) FROM {RELATION}")
    assert rows == len(frame)
    ends = "min(lower({0})), max(upper({0}) - 1), sum(upper({0}) - 1 - lower({0}))::int"
    for name in ("age", "born"):
        (expected,) = patients.execute(f"SELECT {ends.format(name)} FROM {RELATION}")
        found = frame[name].array
        low, high = found.left.min(), found.right.max()
        width = sum(found.right - found.left, start=0 * (high - low))
        if name == "born":
            low, high, width = low.date(), high.date(), width.days
        assert expected == (low, high, width)
        assert found.closed == "both"
    (expected,) = patients.execute(
        f"SELECT min(lower(seen)), max(upper(seen)), min(lower(weight)), max(upper(weight))"
        f" FROM {RELATION}"
    )
    seen, weight = frame["seen"].array, frame["weight"].array
    weight = weight[np.isfinite(weight.left)]
    found = (seen.left.min(), seen.right.max(), weight.left.min(), weight.right.max())
    assert expected == found
    assert seen.left.tz is UTC or str(seen.left.tz) == "UTC"


def test_texts_numbers_and_sets_have_types_that_know_null(patients):
    frame = dbanon.read(RELATION, settings=patients.settings)
    kinds = {name: str(frame[name].dtype) for name in ("town", "visits", "smokes", "left_at")}
    assert kinds == {
        "town": "category",
        "visits": "Int64",
        "smokes": "boolean",
        "left_at": "datetime64[us]",
    }
    for name in ("remark", "visits", "smokes", "town"):
        counted = dict(patients.execute(f"SELECT {name}, count(*) FROM {RELATION} GROUP BY 1"))
        missing = counted.pop(None, 0)
        assert counted == frame[name].value_counts().loc[lambda n: n > 0].to_dict()
        assert missing == frame[name].isna().sum()
    assert {("A",), ("B",), ("A", "B")} >= set(frame["ward"])
    ((infinite,),) = patients.execute(f"SELECT count(*) FROM {RELATION} WHERE left_at = 'infinity'")
    assert infinite == frame["left_at"].isna().sum()


def test_it_says_what_holds_of_the_rows(patients):
    frame = dbanon.read(RELATION, columns=["disease", "age"], settings=patients.settings)
    assert [*frame.columns] == ["disease", "age"]
    said = dbanon.describe(RELATION, settings=patients.settings)
    assert {
        "relation": RELATION,
        "release": said.release,
        "models": {spec.name: dict(spec.params) for spec in said.models},
        "roles": {"disease": "sensitive", "age": "quasi"},
        "proved_at": said.proved_at,
    } == frame.attrs


def test_an_analyst_needs_select_and_nothing_else(patients):
    analyst = patients.role("frame_reader")
    dbanon.grant(RELATION, [analyst], settings=patients.settings)
    settings = dbanon.Settings(dsn=patients.dsn_as(analyst))
    assert len(dbanon.read(RELATION, settings=settings))


@pytest.mark.parametrize(
    ("relation", "options", "message"),
    [
        ("public.patients", {}, "is not a relation that dbanon published"),
        ("anon.nobody", {}, "nobody"),
        (RELATION, {"columns": ["salary"]}, "has no column salary"),
    ],
)
def test_what_cannot_be_read_is_named(patients, relation, options, message):
    with pytest.raises(dbanon.DbanonError, match=message):
        dbanon.read(relation, settings=patients.settings, **options)


def made(database, kind, *values):
    """Return ranges as a release would show them."""
    database.execute("CREATE SCHEMA IF NOT EXISTS anon")
    listed = ", ".join(f"({'NULL' if v is None else repr(v)}::{kind})" for v in values)
    database.execute(f"CREATE VIEW anon.made AS SELECT * FROM (VALUES {listed}) AS v (r)")
    comment = (
        'dbanon: {"release": 1, "quasi": ["r"], "sensitive": [], "trees": {},'
        ' "models": [{"name": "k-anonymity", "params": {"k": 2}}]}'
    )
    database.execute(f"COMMENT ON VIEW anon.made IS '{comment}'")
    return dbanon.read("anon.made", settings=database.settings)["r"]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int4range", ["[1,5]", "[7,7]"], [(1, 5), (7, 7)]),
        ("int8range", ["[1,5]", "(,3]", None], [(1, 5), (-np.inf, 3), None]),
        ("numrange", ["[1,5]", "[90,)"], [(1, 5), (90, np.inf)]),
        ("numrange", ["[0.5,1.5)"], [(0.5, np.nextafter(1.5, 0))]),
        ("numrange", [f"[{10**30},{10**30 + 2})"], [(1e30, 1e30)]),
        ("daterange", ["[2020-01-01,2020-01-05]"], [(date(2020, 1, 1), date(2020, 1, 5))]),
        ("daterange", ["(,2020-01-05]"], [(date(1, 1, 1), date(2020, 1, 5))]),
        (
            "tstzrange",
            ["[2020-01-01 10:00+02,2020-01-02 00:00+00)", None],
            [
                (
                    datetime(2020, 1, 1, 8, tzinfo=UTC),
                    datetime(2020, 1, 1, 23, 59, 59, 999999, tzinfo=UTC),
                ),
                None,
            ],
        ),
        ("int4range", [None], [None]),
    ],
)
def test_ranges_are_intervals_that_hold_both_ends(database, kind, values, expected):
    found = made(database, kind, *values)
    assert len(expected) == len(found)
    for ends, interval in zip(expected, found, strict=True):
        if ends is None:
            assert pd.isna(interval)
        else:
            low, high = (pd.Timestamp(end) if isinstance(end, date) else end for end in ends)
            assert (low, high) == (interval.left, interval.right)


def test_nobody_published_is_an_empty_frame(database):
    found = made(database, "int4range", "[1,2]")
    database.execute("CREATE OR REPLACE VIEW anon.made AS SELECT int4range(1, 2) AS r WHERE false")
    frame = dbanon.read("anon.made", settings=database.settings)
    assert (1, 0, ["r"]) == (len(found), len(frame), [*frame.columns])


def test_without_pandas_it_says_what_to_install(database, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(dbanon.ConfigError, match="needs pandas") as error:
        dbanon.read(RELATION, settings=database.settings)
    assert "dbanon[pandas]" in str(error.value.hint)
