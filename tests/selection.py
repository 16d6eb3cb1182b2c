"""Which values of a grid are tried on every server, and which in the exhaustive run only."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable


# Whose answers depend on the version: guards, checks, catalogs, rights, and whole commands once.
EVERY_SERVER = (
    "tests/db/",
    "tests/migrations/",
    "tests/security/readers/",
    "tests/e2e/publish/test_publish.py",
    "tests/e2e/interruptions/test_idle_readers.py",
)


def is_for_every_server(item: pytest.Item) -> bool:
    """Whether a test is run on every server, and not only in the exhaustive run."""
    if item.get_closest_marker("pg"):
        return True
    return item.nodeid.startswith(EVERY_SERVER) and not item.get_closest_marker("one_server")


def exhaustive_after(count: int, values: Iterable[object]) -> list[object]:
    """Leave all values but the first to the exhaustive run."""
    return _marked_after(count, values, pytest.mark.exhaustive)


def one_server_after(count: int, values: Iterable[object]) -> list[object]:
    """Try the first values on every server, the others on one server."""
    return _marked_after(count, values, pytest.mark.one_server)


def each_once(*axes: Iterable[object], everywhere: int = 3) -> list[object]:
    """Try each value of each axis once, and the other combinations in the exhaustive run.

    The first ones that are tried, as many as ``everywhere`` says, are tried on every server.
    """
    values = [list(axis) for axis in axes]
    longest = max(map(len, values))
    once = [tuple(axis[i % len(axis)] for axis in values) for i in range(longest)]
    rest = [way for way in product(*values) if way not in once]
    return [*one_server_after(everywhere, once), *exhaustive_after(0, rest)]


def at_depth(count: int) -> int:
    """Return the steps of a long test: all in the exhaustive run, two fifths otherwise."""
    return count * min(100, settings().max_examples) // 100


def some() -> settings:
    """Try fewer examples than usual, where all values of a grid get some."""
    return settings(max_examples=settings().max_examples * 2 // 5)


def _marked_after(count: int, values: Iterable[object], mark: pytest.MarkDecorator) -> list[object]:
    listed = list(values)
    rest = [value if isinstance(value, tuple) else (value,) for value in listed[count:]]
    return [*listed[:count], *(pytest.param(*value, marks=mark) for value in rest)]
