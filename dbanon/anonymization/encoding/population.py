"""A population table, and the population rows that each published class may represent."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.encoding.bands import value_texts
from dbanon.anonymization.encoding.encode import (
    column_of,
    distinct_values,
    leaf_texts,
    ordered_values,
)
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import ColumnKind, Structure, quote_identifier
from dbanon.models.anonymity.presence import Presence

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.anonymization.loss.metrics import Publication
    from dbanon.domain.assignment import EncodedColumn, EncodedTable, ValueColumn

UNKNOWN = -1
"""The place of a value that the table does not know: only what says nothing covers it."""

_REGIONS = frozenset({"interval", "label", "set", "suppress"})
_ANY_RANGE = "(,)"
_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, eq=False, slots=True)
class Population:
    """A population that contains the published rows, by distinct tuple.

    places: (p, d) int32, the place of each value on its column's line: among the sorted values of
    the population if they lie on a line, otherwise the table's code; ``sizes`` for NULL; persons:
    (p,) int64, the rows of each tuple; values: the sorted values by column, None if not on a line.
    """

    places: NDArray[np.int32]
    persons: NDArray[np.int64]
    sizes: tuple[int, ...]
    values: tuple[NDArray[Any] | None, ...]


class _Regions(NamedTuple):
    """Places that each label of a column covers: first to last, or members."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    members: tuple[NDArray[np.int64], ...] | None = None


def encode_population(source: pa.Table, table: EncodedTable) -> Population:
    """Encode the quasi-identifiers of a population; source: as for ``encode``."""
    places = np.empty((source.num_rows, len(table.quasi)), np.int32)
    sizes: list[int] = []
    values: list[NDArray[Any] | None] = []
    for i, column in enumerate(table.quasi):
        _require_values(column)
        place, distinct = distinct_values(column_of(source, column.rule))
        if column.structure is Structure.LINE:
            known, code_of = np.unique(
                ordered_values(place, distinct, column.rule), return_inverse=True
            )
            values.append(known)
            sizes.append(len(known))
        else:
            leaf_of = {label: leaf for leaf, label in enumerate(column.values)}
            texts = leaf_texts(place, distinct, column.rule, kind=column.kind)
            code_of = np.array([leaf_of.get(text, UNKNOWN) for text in texts], np.int64)
            values.append(None)
            sizes.append(column.size)
        places[:, i] = np.append(code_of, sizes[-1])[place]
    tuples, persons = np.unique(places, axis=0, return_counts=True)
    return Population(tuples, persons.astype(np.int64), tuple(sizes), tuple(values))


def _require_values(column: EncodedColumn) -> None:
    if column.has_floor:
        msg = f"column {quote_identifier(column.name)} has a floor, and a population is counted by"
        raise PolicyError(f"{msg} values", hint="leave the floor out, or the model of a population")


def missing_rows(table: EncodedTable, population: Population) -> int:
    """Return how many rows of a table have no row of their own in the population."""
    places = np.empty((table.n_rows, len(table.quasi)), np.int64)
    for i, column in enumerate(table.quasi):
        known, size = population.values[i], population.sizes[i]
        place_of = np.arange(column.size)
        if known is not None:
            place_of = np.searchsorted(known, column.values)
            there = np.append(known, known[:1])[place_of] == column.values if size else False
            place_of = np.where(there, place_of, UNKNOWN)
        places[:, i] = np.append(place_of, size)[column.codes]
    both = np.concatenate([places, population.places])
    owed = np.concatenate([np.ones(table.n_rows), -population.persons])
    of_tuple = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    unknown = (both == UNKNOWN).any(axis=1)
    lacking = np.bincount(of_tuple, weights=np.where(unknown & (owed < 0), 0, owed))
    return int(np.maximum(lacking, 0).sum())


def require_regions(recodings: dict[str, str], *, model: str) -> None:
    """Raise PolicyError for a recoding whose values do not show what a class covers."""
    for column, recoding in recodings.items():
        if recoding not in _REGIONS:
            msg = (
                f"{model} counts the population that a class covers, and recoding {recoding!r} of"
                f" column {quote_identifier(column)} does not tell what it covers"
            )
            raise PolicyError(msg, hint=f"choose one of {', '.join(sorted(_REGIONS))}")


def presence_of(published: Publication, population: Population) -> Presence:
    """Count what the classes cover; O(classes * log p) and one test for each row in reach."""
    n_classes = len(published.size)
    groups = np.zeros(n_classes, np.int64)
    shown = np.flatnonzero(published.classes >= 0)
    groups[published.classes[shown]] = published.assignment.group[shown]
    regions = [
        _regions(column, values, known, size)
        for column, values, known, size in zip(
            published.table.quasi,
            published.values.columns,
            population.values,
            population.sizes,
            strict=True,
        )
    ]
    labels = np.column_stack([column.index[groups] for column in published.values.columns])
    covers = _covers(population, regions, labels)
    return count_presence(published.size, population.persons, covers)


def _covers(
    population: Population, regions: list[_Regions], labels: NDArray[np.int32]
) -> list[NDArray[np.int64]]:
    """Return the tuples that each class covers, given its labels, (g, d)."""
    ranges = [i for i, region in enumerate(regions) if region.members is None]
    by = max(ranges, key=lambda i: population.sizes[i], default=None)
    order = np.arange(len(population.persons))
    if by is not None:
        order = np.argsort(population.places[:, by], kind="stable")
        line = population.places[order, by]
    found = []
    for of_class in labels.tolist():
        some = order
        if by is not None:
            region = regions[by]
            ends = region.first[of_class[by]], region.last[of_class[by]] + 1
            begin, end = np.searchsorted(line, ends)
            some = order[begin:end]
        for i, region in enumerate(regions):
            if i != by and len(some):
                some = some[_inside(region, of_class[i], population.places[some, i])]
        found.append(np.sort(some))
    return found


def _inside(region: _Regions, label: int, places: NDArray[np.int32]) -> NDArray[np.bool_]:
    if region.members is not None:
        return np.isin(places, region.members[label])
    inside: NDArray[np.bool_] = (places >= region.first[label]) & (places <= region.last[label])
    return inside


def count_presence(
    rows: NDArray[np.int64], persons: NDArray[np.int64], covers: list[NDArray[np.int64]]
) -> Presence:
    """Count what classes of ``rows`` (g,) cover, given the tuples in the region of each."""
    by_tuple: dict[int, list[int]] = {}
    times = np.zeros(len(persons), np.int64)
    for some in covers:
        times[some] += 1
    for number, some in enumerate(covers):
        for place in some[times[some] > 1].tolist():
            by_tuple.setdefault(place, []).append(number)
    near: list[set[int]] = [set() for _ in covers]
    for sharing in {tuple(numbers) for numbers in by_tuple.values()}:
        for number in sharing:
            near[number].update(sharing)
    others = [frozenset(some - {number}) for number, some in enumerate(near)]
    return Presence(
        rows=rows,
        covered=np.array([persons[some].sum() for some in covers], np.int64),
        alone=np.array([persons[some[times[some] == 1]].sum() for some in covers], np.int64),
        taken=np.array([rows[list(some)].sum() for some in others], np.int64),
        near=tuple(others),
        uncovered=int(persons[times == 0].sum()),
    )


def _regions(
    column: EncodedColumn, shown: ValueColumn, known: NDArray[Any] | None, size: int
) -> _Regions:
    """Return the places that the published labels of a column cover, read from the labels only."""
    if shown.recoding == "set":
        return _sets(column, shown, known, size)
    first = np.full(len(shown.labels), UNKNOWN, np.int64)
    last = np.full(len(shown.labels), size, np.int64)
    if shown.recoding == "suppress":
        return _Regions(first, last)
    place = _leaves_of(column) if known is None else _range_of(column, known)
    for i, label in enumerate(shown.labels):
        if label is None:
            first[i] = size
        elif label != _ANY_RANGE or known is None:
            first[i], last[i] = place(label)
    return _Regions(first, last)


def _range_of(column: EncodedColumn, known: NDArray[Any]) -> Callable[[str], tuple[int, int]]:
    """Return a function that finds the first and the last value within a published range."""
    exact = [_exact(column.kind, text) for text in value_texts(column.kind, known)]

    def place(label: str) -> tuple[int, int]:
        low, high = (_exact(column.kind, text) for text in label[1:-1].replace('"', "").split(","))
        return bisect_left(exact, low), bisect_right(exact, high) - 1

    return place


def _exact(kind: ColumnKind, text: str) -> Any:  # noqa: ANN401 - whatever compares
    if kind.is_moment:
        return np.datetime64(text.removesuffix("+00"), "us")
    return Decimal(text)


def _leaves_of(column: EncodedColumn) -> Callable[[str], tuple[int, int]]:
    """Return a function that finds the leaves below a label; the root covers everything."""
    tree = column.taxonomy
    assert tree is not None  # noqa: S101 - a column without an order has one
    node_of = {label: node for node, label in reversed(list(enumerate(tree.labels)))}

    def place(label: str) -> tuple[int, int]:
        node = node_of[label]
        everything = UNKNOWN, tree.n_leaves
        return (int(tree.leaf_lo[node]), int(tree.leaf_hi[node])) if node else everything

    return place


def _sets(
    column: EncodedColumn, shown: ValueColumn, known: NDArray[Any] | None, size: int
) -> _Regions:
    texts = column.values if known is None else value_texts(column.kind, known)
    place_of = {text: place for place, text in enumerate(texts)}
    members = []
    for label in shown.labels:
        found = [
            place_of.get(_ESCAPED.sub(r"\1", quoted) if quoted or not plain else plain, UNKNOWN - 1)
            if plain != "NULL"
            else size
            for quoted, plain in _ELEMENT.findall((label or "{}")[1:-1])
        ]
        members.append(np.array(found, np.int64))
    none = np.zeros(0, np.int64)
    return _Regions(none, none, tuple(members))
