"""Published columns in words, for whoever reads them; never a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

RECODED: Mapping[str, str] = {
    "interval": "a range, from the least to the greatest value of the class",
    "interval-text": "a text, the least and the greatest value of the class",
    "label": "a label that stands for all values of the class; the value itself where they are one",
    "set": "the set of all values of the class",
    "mean": "the mean of the class",
    "median": "the median of the class",
    "mode": "the most frequent value of the class",
    "suppress": "NULL",
}
"""What is published of a quasi-identifier, by its recoding."""

_KEPT: Mapping[Role, str] = {
    Role.SENSITIVE: "sensitive, published as it is",
    Role.INSENSITIVE: "published as it is",
}


def in_words(column: str, role: Role, *, recoding: str | None = None) -> str:
    """Return what readers should know of a published column, in one line."""
    if recoding is None:
        return f"{column}: {_KEPT[role]}"
    return f"{column}: quasi-identifier, published as {RECODED.get(recoding, recoding)}"
