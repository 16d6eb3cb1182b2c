"""Replace values by others (Gouweleeuw et al., Journal of Official Statistics 1998).

Or swap them (Dalenius, Reiss, 1982; Moore, 1996).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.interfaces import Bounds, Rows, ValueMasking
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Int32s, Int64s


_ALL = 100.0  # percent
_DIGITS, _ALL_DIGITS = 53, 62  # binary ones, of a number that is drawn and with how many it has

_STEP = np.uint64(0x9E3779B97F4A7C15)  # from one number of a row to its next


@dataclass(frozen=True, slots=True)
class RareToOther(ValueMasking):
    """Replace the values of fewer than ``persons`` persons by one, ``label``.

    If together they have fewer persons, the next rarest values are added.
    """

    persons: int
    label: str = "other"

    solvable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for an invalid parameter."""
        if self.persons < 1 or not self.label:
            raise PolicyError("persons of rare-to-other is at least 1, and its label is not empty")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return the codes with one for all rare values; O(n log n)."""
        column, size = codes[:, 0], int(n_values[0])
        present = column >= 0
        pairs = np.unique(np.column_stack([column[present], rows.person[present]]), axis=0)
        values, counts = np.unique(pairs[:, 0], return_counts=True)
        order = values[np.argsort(counts, kind="stable")]
        n_rare = int((counts < self.persons).sum())
        while 0 < n_rare < len(values) and len(_persons(pairs, order[:n_rare])) < self.persons:
            n_rare += 1
        rare = np.isin(column, order[:n_rare])
        return np.where(rare, size, column).astype(np.int32)[:, None]


@dataclass(frozen=True, slots=True)
class Pram(ValueMasking):
    """Keep each value with probability ``keep``, otherwise draw another of the rows' values.

    The transition matrix has ``keep`` on its diagonal and (1 - keep) / (values - 1) elsewhere;
    counts can be corrected by it. An added or removed value changes only rows that are given it;
    otherwise the majority of many releases would show the true value.
    """

    keep: float = field(metadata=Bounds("keep of pram", above=0, below=1).field())

    solvable: ClassVar[bool] = False

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the drawn codes."""
        drawn, masked = rows.draw(2, "another"), codes.copy()
        present = np.unique(codes[codes >= 0])
        changes = np.flatnonzero((drawn[:, 0] >= self.keep) & (codes[:, 0] >= 0))
        if len(present) > 1:
            own = np.searchsorted(present, codes[changes, 0]).astype(np.int32)
            others = _others(own, drawn[changes, 1], rows.values()[present])
            masked[changes, 0] = present[others]
        return masked


@dataclass(frozen=True, slots=True)
class LocalSuppression(ValueMasking):
    """Replace values in rare combinations by NULL (Hundepool et al., mu-Argus manual).

    Afterwards every combination of remaining values of up to ``size`` columns belongs to at least
    ``persons`` persons. Rare values go first, then those of rare pairs: in each row the value in
    most of them (ties: the last named column).
    """

    persons: int
    size: int = 2

    joint: ClassVar[bool] = True
    solvable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for an invalid parameter."""
        if self.persons < 1 or self.size < 1:
            raise PolicyError("persons and size of local-suppression are at least 1")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:
        """Return the codes with NULLs; O(n p^size) for each suppressed value of a row."""
        p = codes.shape[1]
        if self.size > p:
            raise PolicyError(f"size of local-suppression is at most its {p} columns")
        masked, width = codes.copy(), 1
        while width <= self.size:
            unsafe = np.zeros(codes.shape, np.int64)
            for chosen in combinations(range(p), width):
                columns = np.array(chosen)
                rare = _rare(masked[:, columns], n_values[columns], rows.person, self.persons)
                unsafe[np.ix_(rare, columns)] += 1
            hit = np.flatnonzero(unsafe.any(axis=1))
            masked[hit, p - 1 - unsafe[hit, ::-1].argmax(axis=1)] = -1
            width = 1 if len(hit) else width + 1  # suppression may leave rare values behind
        return masked


def _others(
    own: NDArray[np.int32], drawn: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Return a uniformly drawn value of each row other than its own.

    drawn: (m,), values: (v,) fixed random numbers of rows and values. A row probes random slots of
    a table, at least three quarters empty, so that few rows change with a value.
    """
    digits = int(np.ceil(np.log2(len(values)))) + 2
    table = np.full(2**digits, -1, np.int32)
    for value in np.argsort(values, kind="stable").tolist():
        place = int(values[value] * len(table))
        while table[place] >= 0:
            place = (place + 1) % len(table)
        table[place] = value
    found, left = np.empty(len(own), np.int32), np.arange(len(own))
    numbers = (drawn * 2.0**53).astype(np.uint64)
    while len(left):
        numbers += _STEP
        tried = table[_mixed(numbers[left]) >> np.uint64(64 - digits)]
        is_other = (tried >= 0) & (tried != own[left])
        found[left[is_other]] = tried[is_other]
        left = left[~is_other]
    return found


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return pseudo-random 64 bits (SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


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


@dataclass(frozen=True, slots=True)
class RankSwapping(ValueMasking):
    """Swap each value with one of the next ranks, at most ``percent`` of the rows away.

    Each value moves at most once, and NULL stays in place.
    """

    percent: float = field(metadata=Bounds("percent of rank-swapping", above=0, most=_ALL).field())

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the reordered codes; O(n log n)."""
        ordered = np.argsort(codes[:, 0], kind="stable")
        ordered = ordered[codes[ordered, 0] >= 0]
        width = max(1, int(self.percent * len(ordered) / _ALL))
        partner = _partners(rows.draw(1, "rank")[ordered, 0], width)
        masked = codes.copy()
        masked[ordered, 0] = codes[ordered[partner], 0]
        return masked


@dataclass(frozen=True, slots=True)
class Swapping(ValueMasking):
    """Swap the values of ``share`` of the rows in pairs, in all columns together.

    With ``within``, both rows of a pair agree in those columns, so all joint counts of these and
    the swapped columns stay. Most pairs stay when other rows are inserted or deleted; otherwise a
    comparison of two releases would reveal which rows are swapped.
    """

    share: float = field(metadata=Bounds("share of swapping", above=0, most=1).field())

    joint: ClassVar[bool] = True

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the codes with some rows swapped; O(n log n)."""
        drawn = rows.draw(2, "swap")
        chosen = np.flatnonzero(drawn[:, 0] < self.share)
        one, other = (chosen[found] for found in _pairs(drawn[chosen, 1]))
        masked = codes.copy()
        masked[one], masked[other] = codes[other], codes[one]
        return masked


@dataclass(frozen=True, slots=True)
class Permutation(ValueMasking):
    """Shuffle the values within each class, in all columns together.

    The release shows the values of each class, but not which of them were in one row.
    """

    joint: ClassVar[bool] = True
    within_class: ClassVar[bool] = True

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the reordered codes; O(n log n)."""
        return codes[np.argsort(rows.draw(1, "place")[:, 0], kind="stable")]


def _pairs(drawn: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of pairs, all but one if their number is odd; O(n log n).

    Pairs have the longest common prefix, so another number changes at most one pair per digit.
    """
    left = np.argsort(drawn, kind="stable")
    again = np.arange(len(left)) - np.searchsorted(drawn[left], drawn[left])
    digits = (drawn[left] * 2.0**_DIGITS).astype(np.int64)
    digits += np.minimum(again, 2 ** (_ALL_DIGITS - _DIGITS) - 1) << _DIGITS
    order = np.argsort(digits, kind="stable")
    left, digits = left[order], digits[order]
    pairs = [np.empty((0, 2), np.int64)]
    for shift in range(_ALL_DIGITS + 1):
        beginning = digits >> shift
        place = np.arange(len(left)) - np.searchsorted(beginning, beginning)
        first = np.flatnonzero((place[:-1] % 2 == 0) & (beginning[1:] == beginning[:-1]))
        pairs.append(np.column_stack([left[first], left[first + 1]]))
        taken = np.concatenate([first, first + 1])
        left, digits = np.delete(left, taken), np.delete(digits, taken)
    one, other = np.concatenate(pairs).T
    return one, other


def _partners(drawn: NDArray[np.float64], width: int) -> NDArray[np.int64]:
    """Return the rank with which each is swapped, itself for none; O(n) for random numbers.

    A rank takes the free one with the next greater number, so most partners stay if rows change.
    """
    n, size = len(drawn), max(1, width // 2)
    numbers, partner = drawn.tolist(), np.arange(n)
    cells = [int(number * size) for number in numbers]
    window: list[list[int]] = [[] for _ in range(size)]  # free ranks after the present one, by cell

    def following(rank: int) -> int | None:
        own, start = numbers[rank], cells[rank]
        for step in range(size + 1):
            found = window[(start + step) % size]
            if step == 0:
                found = [other for other in found if numbers[other] >= own]
            if found:
                return min(found, key=numbers.__getitem__)
        return None

    for rank in range(min(width, n)):
        window[cells[rank]].append(rank)
    for rank in range(n):
        if rank + width < n:
            window[cells[rank + width]].append(rank + width)
        if partner[rank] != rank:
            continue
        window[cells[rank]].remove(rank)
        other = following(rank)
        if other is not None:
            window[cells[other]].remove(other)
            partner[rank], partner[other] = other, rank
    return partner
