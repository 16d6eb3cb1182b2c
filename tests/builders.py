"""Encoded tables from plain Python values."""

from __future__ import annotations

import csv
import gzip
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.outcome import Outcome, published_values
from dbanon.anonymization.released.reading import of_outcome
from dbanon.domain.assignment import Assignment, Taxonomy
from dbanon.domain.policy import (
    K_ANONYMITY,
    L_DIVERSITY,
    ColumnRule,
    ModelSpec,
    Policy,
    Role,
)
from dbanon.domain.table import ColumnKind, TableName

DATA = Path(__file__).parent / "data"

ARROW_TYPES = {
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.FLOAT: pa.float64(),
    ColumnKind.DECIMAL: pa.float64(),
    ColumnKind.DATE: pa.date32(),
    ColumnKind.TIMESTAMP: pa.timestamp("us"),
    ColumnKind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    ColumnKind.BOOLEAN: pa.string(),
    ColumnKind.CATEGORY: pa.string(),
}
KINDS = {
    int: ColumnKind.INTEGER,
    float: ColumnKind.FLOAT,
    datetime: ColumnKind.TIMESTAMP,
    date: ColumnKind.DATE,
    str: ColumnKind.CATEGORY,
}


def tree(name, branches):
    """Build a taxonomy from nested dictionaries; a leaf is a label whose branches are empty."""
    labels, parent, depth, lo, hi, leaves = [], [], [], [], [], []

    def add(label, below, above, level):
        node = len(labels)
        labels.append(label)
        parent.append(above)
        depth.append(level)
        lo.append(len(leaves))
        hi.append(-1)
        if not below:
            leaves.append(node)
        for child, branch in below.items():
            add(child, branch, node, level + 1)
        hi[node] = len(leaves) - 1

    add("*", branches, -1, 0)
    arrays = (np.array(column, np.int32) for column in (parent, depth, lo, hi, leaves))
    return Taxonomy(name, tuple(labels), *arrays)


def leaf_tree(**branches):
    """Shorten ``{"a": {}, "b": {}}`` to ``"ab"`` inside nested branches."""
    return {
        label: leaf_tree(**below) if isinstance(below, dict) else {key: {} for key in below}
        for label, below in branches.items()
    }


# root{a, P{b, c}, U{V{d, g}, X{Y{e, f}}}}
LETTERS = tree(
    "letters",
    {
        "a": {},
        "P": {"b": {}, "c": {}},
        "U": {"V": {"d": {}, "g": {}}, "X": {"Y": {"e": {}, "f": {}}}},
    },
)


def kind_of(values):
    return next((KINDS[type(value)] for value in values if value is not None), ColumnKind.CATEGORY)


def policy_of(columns, sensitive=(), *, k=2, l=1, rules=None, **changes):
    """Return a policy; ``rules`` holds further fields of a column's rule."""
    rules = rules or {}
    quasi = [ColumnRule(name, Role.QUASI, **rules.get(name, {})) for name in columns]
    others = [ColumnRule(name, Role.SENSITIVE, **rules.get(name, {})) for name in sensitive]
    return Policy(
        table=TableName("public", "people"),
        columns=(*quasi, *others),
        models=(ModelSpec(K_ANONYMITY, {"k": k}), ModelSpec(L_DIVERSITY, {"l": l})),
        **changes,
    )


def encoded(columns, sensitive=None, *, kinds=None, rules=None, taxonomies=()):
    """Encode lists of values, None being NULL; kinds are guessed from the values."""
    sensitive = sensitive or {}
    kinds = {name: kind_of(values) for name, values in columns.items()} | (kinds or {})
    arrays = {name: pa.array(values, ARROW_TYPES[kinds[name]]) for name, values in columns.items()}
    arrays |= {name: pa.array(values, pa.string()) for name, values in sensitive.items()}
    return encode(
        pa.table(arrays),
        policy_of(columns, sensitive, rules=rules),
        kinds=kinds,
        taxonomies={taxonomy.name: taxonomy for taxonomy in taxonomies},
    )


def grouped(table, groups, policy):
    """Return what readers see of groups, numbered from 0 without gaps, -1 being left out."""
    ids = np.array(groups, np.int32)
    assignment = Assignment(ids, int(ids.max()) + 1)
    outcome = Outcome(assignment, published_values(table, assignment), None)
    return of_outcome(table, outcome, policy)


def read_numbers(name, columns=None):
    """Read columns of integers of one of the reference files."""
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {column: [float(row[column]) for row in rows] for column in columns or rows[0]}


INTEGERS = st.none() | st.integers(-3, 6)
FLOATS = st.none() | st.sampled_from([-1.5, 0.0, 0.25, 3.75, 1e6])
DATES = st.none() | st.dates(date(1999, 12, 28), date(2000, 1, 5))
MOMENTS = st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2000, 1, 3))  # noqa: DTZ001 - naive
CATEGORIES = st.none() | st.sampled_from(["x", "y", "", "NULL", 'quo"ted, {}\\'])
LEAVES = st.none() | st.sampled_from("abcdefg")
VALUES = {
    "integer": INTEGERS,
    "float": FLOATS,
    "date": DATES,
    "moment": MOMENTS,
    "category": CATEGORIES,
    "letter": LEAVES,
    "constant": st.just(7),
}
GUESSED = {
    "integer": ColumnKind.INTEGER,
    "float": ColumnKind.FLOAT,
    "date": ColumnKind.DATE,
    "moment": ColumnKind.TIMESTAMP,
    "category": ColumnKind.CATEGORY,
    "letter": ColumnKind.CATEGORY,
    "constant": ColumnKind.INTEGER,
}


SIZES = st.integers(1, 30)


@st.composite
def tables(
    draw, *, rows=SIZES, names=tuple(VALUES), min_sensitive=0, max_sensitive=2, weights=(1.0,)
):
    """Draw an encoded table of one to four columns and up to two sensitive ones."""
    n = draw(rows)
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))

    def column(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    rules = {name: {"weight": draw(st.sampled_from(weights))} for name in chosen}
    if "letter" in chosen:
        rules["letter"]["taxonomy"] = "letters"
    sensitive = {
        f"disease {i}": column(st.none() | st.sampled_from(["flu", "cold", "gout"]))
        for i in range(draw(st.integers(min_sensitive, max_sensitive)))
    }
    return encoded(
        {name: column(VALUES[name]) for name in chosen},
        sensitive,
        kinds={name: GUESSED[name] for name in chosen},
        rules=rules,
        taxonomies=[LETTERS],
    )


@st.composite
def tables_and_requirements(draw, **options):
    """Draw a table and a (k, l) that the whole table meets; sizes around multiples of k."""
    k = draw(st.integers(1, 5))
    n = draw(st.sampled_from([k, 2 * k - 1, 2 * k, 3 * k - 1, 3 * k, 3 * k + 1, 6 * k + 2]))
    table = draw(tables(rows=st.just(n), **options))
    distinct = [len(np.unique(column)) for column in table.sensitive.T]
    l = draw(st.integers(1, min([3, *distinct]))) if distinct else 1
    return table, k, l
