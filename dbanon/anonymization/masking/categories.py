"""Values that become others (Gouweleeuw et al., Journal of Official Statistics 1998)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Int32s, Int64s


@dataclass(frozen=True, slots=True)
class RareToOther:
    """Replace the values of fewer than ``persons`` persons by one, ``label``.

    If those together are fewer persons, the next rarest values join them.
    """

    persons: int
    label: str = "other"

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if self.persons < 1 or not self.label:
            raise PolicyError("persons of rare-to-other is at least 1, and its label is not empty")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return the codes with one for all rare values; O(n log n)."""
        column, size = codes[:, 0], int(n_values[0])
        present = column >= 0
        pairs = np.unique(np.column_stack([column[present], rows.person[present]]), axis=0)
        counts = np.bincount(pairs[:, 0], minlength=size)
        order = np.argsort(counts, kind="stable")
        n_rare = int((counts < self.persons).sum())
        while 0 < n_rare < size and len(_persons(pairs, order[:n_rare])) < self.persons:
            n_rare += 1
        rare = np.isin(column, order[:n_rare])
        return np.where(rare, size, column).astype(np.int32)[:, None]


@dataclass(frozen=True, slots=True)
class Pram:
    """Keep each value with the probability ``keep``, else give one of the others, all as likely.

    That is the transition matrix, with ``keep`` on its diagonal and (1 - keep) / (values - 1)
    elsewhere; who knows it can correct counts.
    """

    keep: float

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if not 0.0 < self.keep < 1.0:
            raise PolicyError("keep of pram is more than 0 and less than 1")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return the codes that were drawn."""
        others = int(n_values[0]) - 1
        drawn = rows.draw(2, f"one of {others + 1}")
        other = (drawn[:, 1:] * others).astype(np.int32)
        other += other >= codes
        stays = (drawn[:, :1] < self.keep) | (codes < 0) | (others == 0)
        return np.where(stays, codes, other).astype(np.int32)


@dataclass(frozen=True, slots=True)
class LocalSuppression:
    """Give NULL for values in rare combinations (Hundepool et al., mu-Argus manual).

    Afterwards every combination of the values of ``size`` of the columns that is left belongs to at
    least ``persons`` persons. In each row the value in most rare combinations goes first, of equal
    ones that of the column that is named last.
    """

    persons: int
    size: int = 2

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if self.persons < 1 or self.size < 1:
            raise PolicyError("persons and size of local-suppression are at least 1")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return the codes with NULLs; O(n p^size) for each value of a row that goes."""
        p = codes.shape[1]
        if self.size > p:
            raise PolicyError(f"size of local-suppression is at most its {p} columns")
        masked = codes.copy()
        while True:
            unsafe = np.zeros(codes.shape, np.int64)
            for chosen in combinations(range(p), self.size):
                columns = np.array(chosen)
                rare = _rare(masked[:, columns], n_values[columns], rows.person, self.persons)
                unsafe[np.ix_(rare, columns)] += 1
            hit = np.flatnonzero(unsafe.any(axis=1))
            if not len(hit):
                return masked
            masked[hit, p - 1 - unsafe[hit, ::-1].argmax(axis=1)] = -1


def _persons(pairs: Int64s, codes: Int64s) -> Int64s:
    return np.unique(pairs[np.isin(pairs[:, 0], codes), 1])


def _rare(codes: Int32s, sizes: Int64s, person: Int64s, persons: int) -> Int64s:
    """Return the rows without NULL whose combination has fewer persons."""
    full = np.flatnonzero((codes >= 0).all(axis=1))
    joint = np.zeros(len(full), np.int64)
    for column, size in zip(codes[full].T, sizes, strict=True):
        joint = np.unique(joint * (size + 1) + column, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([joint, person[full]]), axis=0)
    counts = np.bincount(pairs[:, 0])
    return full[counts[joint] < persons] if len(full) else full
