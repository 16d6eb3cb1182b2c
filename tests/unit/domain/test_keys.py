"""A key of a policy is declared once, and nothing else has to know of it."""

import tomllib
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, get_args

import pytest

from dbanon.domain.policy import ColumnRule, Key, Policy, keys_of, meanings_of
from dbanon.domain.table import TableName
from dbanon.formats import policies
from dbanon.formats.document_reader import Section

TYPES = {
    "text": {str},
    "count": {int},
    "number": {float},
    "flag": {bool},
    "texts": {tuple[str, ...]},
    "relation": {TableName},
    "word or count": {int, str},
}


@pytest.mark.parametrize("described", [Policy, ColumnRule])
def test_the_form_of_a_key_is_that_of_its_type(described):
    for field in fields(described):
        if (
            field.name in keys_of(described)
            and (form := keys_of(described)[field.name].form) in TYPES
        ):
            declared = get_args(field.type)[0]
            parts = set(getattr(declared, "__args__", ()) or {declared}) - {type(None)}
            parts = {declared} if declared == tuple[str, ...] else parts
            assert all(any(issubclass_of(part, kind) for kind in TYPES[form]) for part in parts), (
                field
            )


def issubclass_of(part, kind):
    return part == kind or (
        isinstance(part, type) and isinstance(kind, type) and issubclass(part, kind)
    )


@dataclass(frozen=True)
class Described:
    """Something with keys.

    note: what to know of it, in as many words
        as it takes | nothing to know
    size: how large it is
    """

    size: Annotated[int, Key("count", least=2)]
    note: Annotated[str | None, Key("text")] = None
    other: int = 0


def test_what_a_key_declares_is_read_and_written():
    assert {"size", "note"} == keys_of(Described).keys()
    expected = {
        "note": ("what to know of it, in as many words as it takes", "nothing to know"),
        "size": ("how large it is", "required"),
    }
    assert expected == meanings_of(Described)
    section = Section(tomllib.loads('size = 3\nnote = "text"'), "", [])
    found = Described(**policies.read(section, keys_of(Described), {}))
    assert Described(3, "text") == found
    assert {"size": 3, "note": "text"} == policies.document(found, {})
    assert {"size": 3} == policies.document(Described(3), {})
    section = Section({"size": 1, "note": 5}, "at", [])
    assert {} == policies.read(section, keys_of(Described), {})
    assert ["at.size: must be at least 2, and less than 2^63"] == section.problems[:1]


def test_every_key_without_a_form_of_its_own_is_written_if_it_differs():
    for field in fields(Policy):
        key = keys_of(Policy)[field.name]
        if key.form != "own" and field.default is not MISSING and not key.is_always:
            assert field.name not in policies.to_document(Policy(TableName(None, "t"), ()))
