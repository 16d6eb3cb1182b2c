"""Releases of one table compared by their definition: sets of persons, classes and values."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rows = Mapping[int, Sequence[tuple[int, Mapping[str, object]]]]
    """The published rows of each person: its class and its sensitive values."""


class Pair(NamedTuple):
    """What a reader of two releases learns, see ``dbanon.domain.release.Against``."""

    persons: int
    in_both: int
    smallest: int
    below: int


def classes_of(rows: Rows) -> dict[int, frozenset[int]]:
    """Return the classes of each person."""
    return {person: frozenset(number for number, _ in own) for person, own in rows.items()}


def pair(before: Rows, now: Rows, k: int) -> Pair:
    """Count the persons whom both releases, or one and not the other, show in the same classes."""
    first, second = classes_of(before), classes_of(now)
    either = first.keys() | second.keys()
    sizes = Counter((first.get(person), second.get(person)) for person in either)
    below = sum(size for size in sizes.values() if size < k)
    in_both = len(first.keys() & second.keys())
    return Pair(len(either), in_both, min(sizes.values(), default=0), below)


def exposure(before: Rows, now: Rows, column: str, l: int) -> tuple[int, int]:
    """Count the persons in both who are left with fewer than l values of a column, and with one."""
    first, second = classes_of(before), classes_of(now)
    possible = [
        _values(rows, classes, column) for rows, classes in ((before, first), (now, second))
    ]
    left = [
        len(possible[0][first[person]] & possible[1][second[person]])
        for person in first.keys() & second.keys()
    ]
    return sum(0 < values < l for values in left), left.count(1)


def _values(
    rows: Rows, classes: Mapping[int, frozenset[int]], column: str
) -> dict[frozenset[int], set[object]]:
    found = defaultdict(set)
    for person, own in rows.items():
        found[classes[person]] |= {values[column] for _, values in own if column in values}
    return found


def diversity(rows: Rows, cells: Mapping[int, object], column: str) -> list[int]:
    """Return the number of values of each cell that a release shows, without those of one person.

    Of persons with one row each, that is the number of their values.
    """
    holders = defaultdict(lambda: defaultdict(set))
    for person, own in rows.items():
        for _, values in own:
            holders[cells[person]][values.get(column)].add(person)
    found = []
    for of_value in holders.values():
        sole = Counter(person for (person, *more) in of_value.values() if not more)
        found.append(len(of_value) - max(max(sole.values(), default=0) - 1, 0))
    return found
