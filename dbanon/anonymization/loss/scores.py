"""Comparable scales for the values of all columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn
    from dbanon.kernels.arrays import Floats


_EXACT = 2.0**53
_DIGITS = 12  # differences by rounding alone are equal, on every machine


def first_component(points: Floats) -> Floats:
    """Return the loadings of the first principal component, (d,), the greatest being positive."""
    centered = points - points.mean(axis=0)
    loadings = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    greatest = np.abs(loadings).round(_DIGITS).argmax()
    return np.asarray(loadings * np.sign(loadings[greatest]), np.float64)


def ordinal_places(column: EncodedColumn) -> Floats:
    """Return weighted positions, (size,), in multiples of 2**-40 so that ties stay exact."""
    step = np.rint(column.rule.weight**0.5 / max(column.size, 1) * 2.0**40) / 2.0**40
    places: Floats = np.arange(column.size) * step
    return places


def standardized(column: EncodedColumn) -> Floats:
    """Return the z-scores of the rows' values times the root of the weight, NaN for NULL."""
    numbers = np.append(_scaled(column.values), np.nan)[column.codes]
    present = numbers[~np.isnan(numbers)]
    spread = present.std() if present.size else 0.0
    if spread == 0.0:
        return np.where(np.isnan(numbers), np.nan, 0.0)
    scores: Floats = (numbers - present.mean()) / spread * column.rule.weight**0.5
    return scores


def _scaled(values: NDArray[Any]) -> Floats:
    """Scale sorted values by a power of two and shift large integers, without rounding errors."""
    if values.dtype.kind != "f" and np.abs(values.astype(np.float64)).max(initial=0.0) > _EXACT:
        # unsigned differences of int64 do not overflow
        return (values.view(np.uint64) - values[:1].view(np.uint64)).astype(np.float64)
    numbers = values.astype(np.float64)
    _, exponent = np.frexp(np.abs(numbers).max(initial=0.0))
    return np.asarray(np.ldexp(numbers, -exponent), np.float64)
