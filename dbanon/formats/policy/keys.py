"""Read and write the keys that policies and column rules declare."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.keys import keys_of
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from dbanon.domain.keys import Key
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.formats.document_reader import Section


def read(
    section: Section, keys: Mapping[str, Key], names: Mapping[str, Collection[str] | None]
) -> dict[str, object]:
    """Read the keys of a section, except those with a form of their own; names: by registry."""
    found = dict[str, object]()
    for name, key in keys.items():
        if key.form != "own":
            known = replace(key, among=tuple(names.get(key.names) or key.among))
            found[name] = _READERS[key.form](section, name, known)
    return {name: value for name, value in found.items() if value is not None}


def document(described: Policy | ColumnRule, own: Mapping[str, object]) -> dict[str, object]:
    """Return the keys that differ from their defaults; own: those with a form of their own."""
    keys, written = keys_of(type(described)), dict[str, object]()
    for field in fields(described):
        key, value = keys.get(field.name), getattr(described, field.name)
        if key is not None and key.form == "own":
            written |= {field.name: _plain(own[field.name])} if own.get(field.name) else {}
        elif key is not None and (key.is_always or value != field.default):
            written[field.name] = _plain(value)
    return written


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, (str, TableName)) else value


def _text(section: Section, name: str, key: Key) -> str | None:
    text = section.text(name, among=key.among or None)
    if text is not None and key.pattern and not re.fullmatch(key.pattern, text):
        section.report(name, key.otherwise)
    return text


def _count(section: Section, name: str, key: Key) -> int | None:
    return section.integer(name, least=int(key.least))


def _number(section: Section, name: str, key: Key) -> float | None:
    number = section.number(name, above=key.above)
    if number is not None and not key.least <= number < key.below:
        section.report(name, key.otherwise)
    return number


def _flag(section: Section, name: str, _: Key) -> bool | None:
    return section.boolean(name)


def _texts(section: Section, name: str, key: Key) -> tuple[str, ...] | None:
    texts = section.texts(name, empty=key.empty)
    repeated = [text for text, n in Counter(texts or ()).items() if n > 1]
    if repeated and key.unique:
        section.report(name, f"lists {len(repeated)} of its values more than once")
    return texts


def _relation(section: Section, name: str, key: Key) -> TableName | None:
    text = section.text(name)
    try:
        found = None if text is None else TableName.parse(text)
    except ConfigError as error:
        section.report(name, str(error))
        return None
    if found is not None and found.schema is None and key.has_schema:
        section.report(name, "must name its schema, as in public.people")
    return found


def _word_or_count(section: Section, name: str, key: Key) -> str | int | None:
    is_word = isinstance(section.values.get(name), str)
    return section.text(name, among=key.among) if is_word else section.integer(name, least=1)


_READERS: Mapping[str, Callable[[Section, str, Key], object]] = {
    "text": _text,
    "count": _count,
    "number": _number,
    "flag": _flag,
    "texts": _texts,
    "relation": _relation,
    "word or count": _word_or_count,
}
