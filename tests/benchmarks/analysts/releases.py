"""Adult as different algorithms publish it, and what a reader makes of each cell.

A cell is read as the functions for analysts read it: all values that it may stand for are equally
likely (``dbanon.share``, ``dbanon.shares_of_labels``). So a range of ages is its whole numbers in
equal shares, and a node of a taxonomy the leaves below it; a set is its elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from samples.datasets import load
from samples.published import leaves_below, publish, reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samples.datasets import Dataset
    from samples.published import Scored

AGE = "age"
LEFT_OUT = 0.02


class Setting(NamedTuple):
    k: int
    l: int


SETTINGS = (Setting(5, 1), Setting(10, 1), Setting(50, 1), Setting(5, 3))


class Way(NamedTuple):
    """How to publish: the name of the line, whether as sets, and fields of the policy."""

    name: str
    sets: bool
    changes: Mapping[str, object]


WAYS = (
    Way("auto", sets=False, changes={}),
    Way("auto, loss = il", sets=False, changes={"params": {"loss": "il"}}),
    Way("auto, sets", sets=True, changes={}),
    Way("k-member", sets=False, changes={"algorithm": "k-member", "params": {"cost": "ncp"}}),
    Way("mondrian", sets=False, changes={"algorithm": "mondrian"}),
    Way("microaggregation", sets=False, changes={"algorithm": "microaggregation"}),
    Way(
        "full-domain, 2 % left out",
        sets=False,
        changes={"algorithm": "full-domain", "max_suppressed": LEFT_OUT},
    ),
)


@dataclass(frozen=True, eq=False)
class Release:
    """A published relation, as it is read.

    group: (n,) the group of each row of the source, -1 for those left out; size: (groups,) its
    rows; values: by column, all that it can have; shares: by column, (groups, values) how likely
    each value is in each group.
    """

    ncp: float
    group: np.ndarray
    size: np.ndarray
    values: dict[str, list]
    shares: dict[str, np.ndarray]


def releases(setting: Setting, **source) -> Iterator[tuple[str, Dataset, Release]]:
    """Publish Adult in each way; source: see ``load``."""
    tables = {sets: load("adult", sets=sets, **source) for sets in (False, True)}
    for way in WAYS:
        table = tables[way.sets]
        scored = publish(table, k=setting.k, l=setting.l, **way.changes)
        yield way.name, table, as_read(table, scored)


def as_read(table: Dataset, scored: Scored) -> Release:
    group = scored.outcome.assignment.group
    values, shares = {}, {}
    for column in scored.outcome.values.columns:
        values[column.name] = domain(table, column.name)
        read = reader(table, column.name, column.recoding, table.source[column.name].to_pylist())
        covered = np.array(
            [[read(label)[1](value) for value in values[column.name]] for label in column.labels]
        )
        shares[column.name] = (covered / covered.sum(axis=1, keepdims=True))[column.index]
    n_groups = scored.outcome.assignment.n_groups
    size = np.bincount(group[group >= 0], minlength=n_groups)
    return Release(scored.ncp, group, size, values, shares)


def domain(table: Dataset, name: str) -> list:
    """Return the values that a column can have: whole numbers, or the leaves of its taxonomy."""
    if name in table.trees:
        return sorted(leaves_below(table.trees[name])["*"])
    known = table.source[name].to_pylist()
    return list(range(min(known), max(known) + 1))
