"""Values that change places (Dalenius, Reiss, 1982; Moore, 1996)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymization.masking.interfaces import ValueMasking
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Int32s


_ALL = 100.0  # percent
_DIGITS, _ALL_DIGITS = 53, 62  # binary ones, of a number that is drawn and with how many it has


@dataclass(frozen=True, slots=True)
class RankSwapping(ValueMasking):
    """Swap each value with one of the next ranks, at most ``percent`` of the rows away.

    The column keeps its values, each moves at most once, and NULL stays where it is.
    """

    percent: float

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if not 0.0 < self.percent <= _ALL:
            raise PolicyError("percent of rank-swapping is more than 0 and at most 100")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the codes in another order; O(n log n)."""
        ordered = np.argsort(codes[:, 0], kind="stable")
        ordered = ordered[codes[ordered, 0] >= 0]
        width = max(1, int(self.percent * len(ordered) / _ALL))
        partner = _partners(rows.draw(1, "rank")[ordered, 0], width)
        masked = codes.copy()
        masked[ordered, 0] = codes[ordered[partner], 0]
        return masked


@dataclass(frozen=True, slots=True)
class Swapping(ValueMasking):
    """Swap the values of ``share`` of the rows in pairs, those of all columns together.

    With ``within`` both rows of a pair have the same values of those columns, so that all counts of
    these columns and the swapped ones together stay. Pairs mostly stay when others come and go:
    else whoever compares two releases sees which rows are swapped, and that all others are not.
    """

    share: float

    joint: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if not 0.0 < self.share <= 1.0:
            raise PolicyError("share of swapping is more than 0 and at most 1")

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
    """Put the values of each class in an order of chance, those of all columns together.

    Readers learn what each class holds, and no more: not what else was in the row of a value.
    """

    joint: ClassVar[bool] = True
    within_class: ClassVar[bool] = True

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the codes in another order; O(n log n)."""
        return codes[np.argsort(rows.draw(1, "place")[:, 0], kind="stable")]


def _pairs(drawn: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of pairs, all but one if they are odd; O(n log n).

    Those pair whose numbers have the longest common beginning: one number more or less changes at
    most a pair for each of its digits. Rows of a person with one value have one number: the first
    of them pairs with a first of others, the second with a second.
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
    """Return with which rank each is swapped, itself for none; O(n) for numbers that are drawn.

    A rank that is free takes the one of the free ranks in the window after it whose number comes
    next after its own, and after 1 comes 0: so that most partners stay when others come and go.
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
