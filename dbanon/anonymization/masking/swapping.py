"""Values that change places (Dalenius, Reiss, 1982; Moore, 1996)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.masking.interfaces import Rows
    from dbanon.kernels.arrays import Int32s


_ALL = 100.0  # percent


@dataclass(frozen=True, slots=True)
class RankSwapping:
    """Swap each value with one of the next ranks, at most ``percent`` of the rows away.

    The column keeps its values, each moves at most once, and NULL stays where it is.
    """

    percent: float

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = False

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
class Swapping:
    """Swap the values of ``share`` of the rows in pairs, those of all columns together.

    With ``within`` both rows of a pair have the same values of those columns, so that all counts of
    these columns and the swapped ones together stay.
    """

    share: float

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise PolicyError for what is no such parameter."""
        if not 0.0 < self.share <= 1.0:
            raise PolicyError("share of swapping is more than 0 and at most 1")

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the codes with some rows swapped; O(n log n)."""
        drawn = rows.draw(2, "swap")
        chosen = np.flatnonzero(drawn[:, 0] < self.share)
        chosen = chosen[np.argsort(drawn[chosen, 1], kind="stable")]
        chosen = chosen[: len(chosen) // 2 * 2]
        masked = codes.copy()
        masked[chosen[::2]], masked[chosen[1::2]] = codes[chosen[1::2]], codes[chosen[::2]]
        return masked


@dataclass(frozen=True, slots=True)
class Permutation:
    """Put the values of each class in an order of chance, those of all columns together.

    Readers learn what each class holds, and no more: not what else was in the row of a value.
    """

    of_numbers: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    within_class: ClassVar[bool] = True

    def mask(self, codes: Int32s, n_values: NDArray[np.int64], rows: Rows) -> Int32s:  # noqa: ARG002
        """Return the codes in another order; O(n log n)."""
        return codes[np.argsort(rows.draw(1, "place")[:, 0], kind="stable")]


def _partners(drawn: NDArray[np.float64], width: int) -> NDArray[np.int64]:
    """Return with which rank each is swapped, itself for none; O(n).

    A rank that is free takes one of the free ranks in the window after it, by its drawn number.
    """
    n = len(drawn)
    partner = np.arange(n)
    window: list[int] = []  # the free ranks after the present one, in any order
    place = np.full(n, -1)  # of each of them in the window

    def remove(rank: int) -> None:
        last = window.pop()
        if last != rank:
            window[place[rank]], place[last] = last, place[rank]
        place[rank] = -1

    for rank in range(min(width, n)):
        place[rank] = len(window)
        window.append(rank)
    for rank in range(n):
        if rank + width < n:
            place[rank + width] = len(window)
            window.append(rank + width)
        if place[rank] < 0:
            continue
        remove(rank)
        if window:
            other = window[int(drawn[rank] * len(window))]
            remove(other)
            partner[rank], partner[other] = other, rank
    return partner
