"""Reports as JSON documents, held against each other figure by figure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbanon.domain.errors import ConfigError
from dbanon.domain.report import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PARTS = ("checks", "loss", "risk", "utility")
# What tells the entries of a list apart, in the order in which it is told.
_NAMES = (
    *("attacker", "model", "name", "estimator", "column", "columns", "classifier", "selectivity"),
    *("least", "population"),
)


def read(path: Path) -> dict[str, Any]:
    """Return a report that was written as JSON; raises ConfigError."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(part in document for part in _PARTS):
        raise ConfigError(
            f"{path} holds no report as JSON",
            hint=f"dbanon report RELATION --json > {path.name}, before it is published anew",
        )
    return document


def compare(before: dict[str, Any], now: dict[str, Any]) -> tuple[Difference, ...]:
    """Return the figures of which two reports do not say the same, in the order of the second."""
    old, new = (dict(figures(document)) for document in (before, now))
    return tuple(
        Difference(name, old.get(name), new.get(name))
        for name in dict.fromkeys((*new, *old))
        if old.get(name) != new.get(name)
    )


def figures(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a report by name."""
    for part in _PARTS:
        yield from _figures(part, document[part])


def _figures(name: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NAMES:
                yield from _figures(f"{name} {key}", item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _figures(f"{name} {_named(item, number)}", item)


def _named(item: object, number: int) -> str:
    """Return what tells an entry of a list apart, its number where nothing does."""
    found = [item[key] for key in _NAMES if item.get(key)] if isinstance(item, dict) else []
    parts = [", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in found]
    return f"[{' '.join(parts) or number + 1}]"
