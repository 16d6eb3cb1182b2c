"""What is known of a key of a policy file: the form of its values, and who may have it.

A field of a policy, or of the rule of a column, carries its ``Key`` in its annotation; its entry
in the docstring of the class says what it means. Reader, writer, JSON schema, ``policy show``, the
options that replace it and the pages follow from these.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Form = Literal["text", "count", "number", "flag", "texts", "relation", "word or count", "own"]
"""The forms of values; those of their own are read and written by a module that knows them."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a policy file, or of one of its columns.

    among: the texts that there are, or ``names``, of the registry that has them; pattern: of a
    text; least, above, below: the bounds of a number, the second and the third excluded; otherwise:
    what is said of a value out of these; empty, unique: of the texts of a list; has_schema: whether
    a relation must name its schema; absent: the word for a key that is left out; roles: of the
    columns that may have it, any if empty; shown: how ``policy show`` spells it, by name and value
    if empty, not at all if None; is_always: whether it is written with its default, too.
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


def keys_of(described: type) -> Mapping[str, Key]:
    """Return the keys of a policy, or of a column, by name."""
    found = {field.name: (get_args(field.type) or (None,))[-1] for field in fields(described)}
    return {name: key for name, key in found.items() if isinstance(key, Key)}


def meanings_of(described: type) -> Mapping[str, tuple[str, str]]:
    """Return what each key means, and what holds without it, as Markdown."""
    entries = re.findall(
        r"^(\w+): (.*(?:\n    .*)*)", cleandoc(described.__doc__ or ""), re.MULTILINE
    )
    said = {name: re.sub(r"\s+", " ", text).partition(" | ") for name, text in entries}
    return {name: (meaning, without or "required") for name, (meaning, _, without) in said.items()}
