"""Which values of a grid are tried on every server, and which in the exhaustive run only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def exhaustive_after(count: int, values: Iterable[object]) -> list[object]:
    """Leave all values but the first to the exhaustive run."""
    return _marked_after(count, values, pytest.mark.exhaustive)


def one_server_after(count: int, values: Iterable[object]) -> list[object]:
    """Try the first values on every server, the others on one server."""
    return _marked_after(count, values, pytest.mark.one_server)


def _marked_after(count: int, values: Iterable[object], mark: pytest.MarkDecorator) -> list[object]:
    listed = list(values)
    rest = [value if isinstance(value, tuple) else (value,) for value in listed[count:]]
    return [*listed[:count], *(pytest.param(*value, marks=mark) for value in rest)]
