"""Which values of a grid are left to the exhaustive run."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def exhaustive_after(count: int, values: Iterable[object]) -> list[object]:
    """Leave all values but the first to the exhaustive run."""
    listed = list(values)
    rest = [value if isinstance(value, tuple) else (value,) for value in listed[count:]]
    return [
        *listed[:count],
        *(pytest.param(*value, marks=pytest.mark.exhaustive) for value in rest),
    ]


def each_once(*axes: Iterable[object]) -> list[object]:
    """Try each value of each axis once, and the other combinations in the exhaustive run."""
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    once = [tuple(axis[i % len(axis)] for axis in values) for i in range(longest)]
    rest = [way for way in product(*values) if way not in once]
    return [*once, *exhaustive_after(0, rest)]


def pairs(*axes: Iterable[object]) -> list[tuple[object, ...]]:
    """Return few combinations that have every two values of any two axes together."""
    values = [range(len(list(axis))) for axis in axes]
    sides = list(combinations(range(len(axes)), 2))
    left = {(i, j, a, b) for i, j in sides for a in values[i] for b in values[j]}
    found = []
    while left:
        i, j, a, b = min(left)
        way: dict[int, int] = {i: a, j: b}
        for axis in range(len(axes)):
            if axis not in way:
                news = [_news(left, {**way, axis: value}) for value in values[axis]]
                way[axis] = news.index(max(news))
        left -= {(i, j, way[i], way[j]) for i, j in sides}
        found.append(tuple(axis[way[n]] for n, axis in enumerate(map(list, axes))))
    return found


def _news(left: set[tuple[int, int, int, int]], way: dict[int, int]) -> int:
    """Count the pairs of a combination, whole or in part, that no other has yet."""
    return sum((i, j, way[i], way[j]) in left for i, j in combinations(sorted(way), 2))


def at_depth(count: int) -> int:
    """Return the steps of a long test: all in the exhaustive run, two fifths otherwise."""
    return count if settings().max_examples >= 100 else count * 2 // 5


def some() -> settings:
    """Try fewer examples than usual, where all values of a grid get some."""
    return settings(max_examples=settings().max_examples * 2 // 5)
