"""How two policies differ, key by key, under the paths that a policy file has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbanon.domain.policy import Difference
from dbanon.formats.document_reader import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED = {"columns": "column", "models": "name"}
"""The lists of a document that a file has as tables, by what becomes the key of a table there."""
_OWN = frozenset({"table", "name"})  # which say what a policy is of, and not what it says


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[Difference, ...]:
    """Return every key whose value differs between two documents, in the order of the second."""
    old, new = dict(_flat(before, "")), dict(_flat(after, ""))
    keys = [*new, *(key for key in old if key not in new)]
    return tuple(
        Difference(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)
    )


def _flat(document: Mapping[str, object], path: str) -> Iterator[tuple[str, object]]:
    """Yield the path and the value of every key that is no table."""
    section = Section(document, path, [])
    for key, value in document.items():
        if not path and key in _OWN:
            continue
        here = section.path_of(key)
        if not path and key in _NAMED and isinstance(value, list):
            yield from _by_name(value, here, _NAMED[key])
        elif isinstance(value, Mapping):
            yield from _flat(value, here)
        else:
            yield here, value


def _by_name(listed: list[object], path: str, key: str) -> Iterator[tuple[str, object]]:
    for item in listed:
        if isinstance(item, Mapping):
            fields = {name: value for name, value in item.items() if name != key}
            params = fields.pop("params", {})  # of a model, beside its name
            fields |= params if isinstance(params, Mapping) else {}
            yield from _flat(fields, Section({}, path, []).path_of(str(item.get(key))))
