"""Values in PostgreSQL's text form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dbanon.domain.table import ColumnKind

if TYPE_CHECKING:
    from numpy.typing import NDArray


def value_texts(kind: ColumnKind, values: NDArray[Any]) -> list[str]:
    """Return the text input form of each value (leaves as they are); numbers without exponent."""
    if values.dtype.kind == "O":
        return [str(value) for value in values.tolist()]
    if kind in {ColumnKind.FLOAT, ColumnKind.DECIMAL}:
        return [number_text(value) for value in values.tolist()]
    if kind is ColumnKind.DATE:
        return [str(text) for text in np.datetime_as_string(values)]
    if kind in {ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMPTZ}:
        zone = "+00" if kind is ColumnKind.TIMESTAMPTZ else ""
        texts = np.datetime_as_string(values, unit="us").tolist()
        return [_trim_fraction(text.replace("T", " ")) + zone for text in texts]
    return [str(value) for value in values.tolist()]


def number_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same float64."""
    text = repr(value)
    if "e" in text:
        text = np.format_float_positional(value, trim="-")
    return text.removesuffix(".0").removesuffix(".")


def decimal_text(unit: int, places: int) -> str:
    """Return a number of units of 10**-places without trailing zeros."""
    if not places:
        return str(unit)
    digits = str(abs(unit)).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return ("-" if unit < 0 else "") + (f"{whole}.{fraction}" if fraction else whole)


def _trim_fraction(text: str) -> str:
    return text.rstrip("0").removesuffix(".")
