"""Keys of a policy file: form of their values, and roles that may have them.

A field of a policy or column rule has its ``Key`` in the annotation, and its meaning in the class
docstring. Reader, writer, JSON schema, ``policy show``, command line options and docs derive from
these.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Made = TypeVar("Made")
Form = Literal["text", "count", "number", "flag", "texts", "relation", "word or count", "own"]
"""The forms of values; those of their own are read and written by a module that knows them."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a policy file, or of one of its columns.

    among: allowed texts; names: registry with the allowed texts; pattern: of a text; least
    (inclusive), above, below (exclusive): bounds of a number; otherwise: message for other values;
    empty, unique: of the texts of a list; has_schema: a relation must name its schema; absent:
    value of an omitted key; roles: of columns that may have it, empty for any; shown: format in
    ``policy show``, name and value if empty, omitted if None; is_always: written even with its
    default.
    """

    form: Form
    among: tuple[str, ...] = ()
    names: str = ""
    pattern: str = ""
    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    otherwise: str = ""
    empty: bool = False
    unique: bool = False
    has_schema: bool = False
    absent: str | None = None
    roles: tuple[str, ...] = ()
    shown: str | None = ""
    is_always: bool = False


def made(make: Callable[..., Made], values: Mapping[str, object]) -> Made:
    """Make a value of fields by name, each of which was read in the form that its key asks for."""
    return make(**values)


def keys_of(described: type) -> Mapping[str, Key]:
    """Return the keys of a policy, or of a column, by name."""
    found = {field.name: (get_args(field.type) or (None,))[-1] for field in fields(described)}
    return {name: key for name, key in found.items() if isinstance(key, Key)}


def meanings_of(described: type) -> Mapping[str, tuple[str, str]]:
    """Return the meaning of each key, and its default, as Markdown."""
    entries = re.findall(
        r"^(\w+): (.*(?:\n    .*)*)", cleandoc(described.__doc__ or ""), re.MULTILINE
    )
    said = {name: re.sub(r"\s+", " ", text).partition(" | ") for name, text in entries}
    return {name: (meaning, without or "required") for name, (meaning, _, without) in said.items()}
