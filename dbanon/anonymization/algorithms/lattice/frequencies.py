"""Count the rows of classes, and of classes and sensitive values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dbanon.kernels.arrays import Bools, Floats, Int64s

_SPARSE = 8  # counting is faster than sorting up to this many possible keys per key


class Counts(NamedTuple):
    """A frequency set: for each class one of its distinct rows and its number of rows."""

    first: Int64s
    size: Int64s

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.size)

    def or_finer(self, finer: Counts) -> Counts:
        """Return the finer set if rolling up from it takes less than twice as long (memory)."""
        return self if 2 * self.n_classes <= finer.n_classes else finer


class Pairs(NamedTuple):
    """The number of rows of each class and value of one sensitive column, (p,) each."""

    of: Int64s
    value: Int64s
    size: Int64s


def numbered(keys: Int64s, span: int) -> tuple[Int64s, Int64s]:
    """Return the distinct keys (0..span-1) in order, and the index of each; at most O(m log m)."""
    if span > _SPARSE * len(keys):
        distinct, place = np.unique(keys, return_inverse=True)
        return distinct, place
    there = np.zeros(span, np.bool_)
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]


def join(pairs: Pairs, of: Int64s) -> Pairs:
    """Add up pairs of joined classes; of: the new class of each class."""
    n_values = int(pairs.value.max()) + 1
    keys = of[pairs.of] * n_values + pairs.value
    distinct, place = numbered(keys, (int(of.max()) + 1) * n_values)
    size = np.bincount(place, weights=pairs.size).astype(np.int64)
    return Pairs(distinct // n_values, distinct % n_values, size)


def distances(pairs: Pairs, size: Int64s, kept: Bools) -> Floats:
    """Return the distance of each class from all kept ones: half the sum of differences.

    Earth mover's distance with equal ground distances (Li et al., ICDE 2007). size, kept: (c,).
    """
    whole = np.bincount(pairs.value, weights=pairs.size * kept[pairs.of])
    share = (whole / max(whole.sum(), 1.0))[pairs.value]
    apart = np.abs(pairs.size / size[pairs.of] - share)
    # a value that a class lacks adds its share of the whole
    there = np.bincount(pairs.of, weights=share, minlength=len(size))
    differences = np.bincount(pairs.of, weights=apart, minlength=len(size))
    return np.asarray((differences + 1.0 - there) / 2.0, np.float64)
