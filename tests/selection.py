"""Which tests run on all servers, and which values of a grid are left to the exhaustive run."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable


# Before a change lands, tests run on the first server, and these on the others as well: SQL that
# asks for the version or reads catalogs, functions of checks, every way to write below a guard,
# migrations, and a few whole commands.
ALL_SERVERS = (
    "tests/db/test_servers.py",
    "tests/db/test_catalog.py",
    "tests/db/proofs/test_check_functions.py",
    "tests/db/releases/test_guarded_writes.py",
    "tests/migrations/test_migrations.py",
    "tests/security/readers/test_rights_of_readers.py::test_a_right_that_leads_to_what_is_private_is_found",
    "tests/security/readers/test_rights_of_readers.py::test_the_role_that_was_given_a_right_is_named",
    "tests/e2e/publish/test_publish.py::test_what_is_published_holds_in_the_database",
    "tests/e2e/publish/test_publish.py::test_every_recoding_is_published_in_its_type",
    "tests/e2e/publish/test_publish.py::test_a_partitioned_table_is_published",
)


def is_for_all_servers(item: pytest.Item) -> bool:
    """Whether a test is run on all servers, and not only in the exhaustive run."""
    return item.nodeid.startswith(ALL_SERVERS)


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


def at_depth(count: int) -> int:
    """Return the steps of a long test: all in the exhaustive run, two fifths otherwise."""
    return count * min(100, settings().max_examples) // 100


def some() -> settings:
    """Try fewer examples than usual, where all values of a grid get some."""
    return settings(max_examples=settings().max_examples * 2 // 5)
