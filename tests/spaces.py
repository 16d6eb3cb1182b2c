"""Tables for the search `auto`, with a column for each way in which costs are laid out."""

from __future__ import annotations

import numpy as np
from builders import GUESSED, LETTERS, encoded, tree
from hypothesis import strategies as st

from dbanon.anonymization.auto.space import make_space
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.table import ColumnKind

# 154 leaves at two depths, more than have a table of all pairs; and 40, which fill a set's halves.
WIDE = tree("wide", {f"{a}": {f"{a}-{b}": {} for b in range(a)} for a in range(18)})
HALVES = tree("halves", {f"{a}": {f"{a}-{b}": {} for b in range(5)} for a in range(8)})

VALUES = {
    "integer": [None, *range(-2, 9)],
    "float": [-1.5, 0.0, 0.25, 3.75, 1e6],
    "letter": [None, *"abcdefg"],
    "wide": [None, *WIDE.leaf_labels[::11], *WIDE.leaf_labels[:4]],
    "set": [None, *"pqrstu"],
    "halves": [None, *HALVES.leaf_labels[::4], *HALVES.leaf_labels[28:33]],
    "numbers": [*range(5)],
    "constant": [7],
    "null": [None],
}
RULES = {
    "letter": {"taxonomy": "letters"},
    "wide": {"taxonomy": "wide"},
    "set": {"recoding": "set"},
    "halves": {"recoding": "set", "taxonomy": "halves"},
    "numbers": {"recoding": "set"},
}
KINDS = {
    **dict.fromkeys(VALUES, ColumnKind.CATEGORY),
    **dict.fromkeys(["integer", "numbers", "constant", "null"], ColumnKind.INTEGER),
    "float": GUESSED["float"],
}
DISEASES = [None, "flu", "cold", "gout"]


def table_of(columns, sensitive=None, *, weights=None):
    """Encode columns that bear the names of VALUES."""
    rules = {
        name: RULES.get(name, {}) | {"weight": (weights or {}).get(name, 1)} for name in columns
    }
    return encoded(
        columns,
        sensitive,
        kinds={name: KINDS[name] for name in columns},
        rules=rules,
        taxonomies=[LETTERS, WIDE, HALVES],
    )


def random_table(n, *, seed, names=("integer", "letter", "wide", "set"), n_diseases=4):
    """Return n rows whose values are drawn, the first ones more often."""
    random = np.random.default_rng(seed)

    def draw(values):
        return [values[i] for i in np.minimum(random.geometric(0.2, n), len(values)) - 1]

    columns = {name: draw(VALUES[name]) for name in names}
    return table_of(columns, {"disease": draw([f"d{i}" for i in range(n_diseases)])})


@st.composite
def tables(draw, *, rows, names=tuple(VALUES), sensitive=1):
    """Draw a table of one to four columns, of any weights, and of one sensitive column."""
    n = draw(rows)
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))

    def column(values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    return table_of(
        {name: column(VALUES[name]) for name in chosen},
        {"disease": column(DISEASES)} if sensitive else {},
        weights={name: draw(st.sampled_from([1.0, 0.0, 0.3, 7.0])) for name in chosen},
    )


@st.composite
def problems(draw, *, most=40, **options):
    """Draw a table and a (k, l) that the table as a whole meets."""
    table = draw(tables(rows=st.integers(1, most), **options))
    k = draw(st.integers(1, min(5, table.n_rows)))
    distinct = [len(np.unique(column)) for column in table.sensitive.T]
    return table, k, draw(st.integers(1, min([3, *distinct])))


@st.composite
def spaces(draw, **options):
    """Draw a space and the loss that it is for."""
    table, k, l = draw(problems(**options))
    loss = draw(st.sampled_from(["ncp", "il"]))
    return make_space(table, Requirement(k, l), loss=loss), loss
