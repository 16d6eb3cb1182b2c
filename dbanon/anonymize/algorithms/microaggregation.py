"""Microaggregation by local and large-neighbourhood search."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.embedding import embed
from dbanon.anonymize.local_search import rebuild, start
from dbanon.anonymize.repair import repair
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymize.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable

SMALL, SMALL_TRIALS = 10_000, 2.0  # a table that "fast" rebuilds, and how often for each row
TRIALS, CHUNKS = 100.0, 16


@dataclass(frozen=True, slots=True)
class Microaggregation:
    """Groups of k to 2k - 1 rows of least squared error around their means.

    effort "fast": MDAV in blocks of at most 250 rows, then local search that relocates and swaps
    rows and dissolves and creates groups; up to 10,000 rows also a short form of what follows.
    "best" adds large-neighbourhood search (POPMUSIC, Taillard and Voss 2002): random unions of 3
    to 7 groups are built anew, ``trials`` times for each row, 100 unless given and fewer for k
    above 10, or for ``time_limit`` seconds; only the latter depends on the machine. Larger
    tables are searched in regions of 16,384 rows whose borders move between rounds.

    Rows are points as ``embed`` says; the distances are those of MDAV-generic. Ties go to the
    lower row. Groups that lack distinct sensitive values are merged afterwards, so that the bound
    of 2k - 1 rows holds for l = 1 only.
    """

    effort: str = "fast"
    trials: float | None = None
    time_limit: float | None = None

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n log n) for fast, O(n trials k^2) for best."""
        if self.effort not in {"fast", "best"}:
            msg = f"there is no effort {self.effort!r}"
            raise PolicyError(msg, hint="choose one of fast, best")
        k, n = requirement.k, table.n_rows
        if k == 1 or n < 2 * k:
            group = np.arange(n, dtype=np.int32) if k == 1 else np.zeros(n, np.int32)
        else:
            points, random = embed(table), np.random.default_rng(seed)
            group = start(points, k, random=random)
            group = self._search(points, group, k=k, random=random)
        return repair(table, Assignment(group, int(group.max()) + 1), requirement)

    def _search(
        self,
        points: NDArray[np.float64],
        group: NDArray[np.int32],
        *,
        k: int,
        random: np.random.Generator,
    ) -> NDArray[np.int32]:
        dear = min(1.0, (10 / k) ** 2)
        if self.effort == "best":
            trials = TRIALS * dear if self.trials is None else self.trials
            clock = _clock(self.time_limit)
        elif len(points) <= SMALL:
            trials, clock = SMALL_TRIALS * dear, _clock(None)
        else:
            return group
        return rebuild(points, group, k=k, trials=trials, clock=clock, random=random)


def _clock(limit: float | None) -> Iterator[tuple[float, float, float]]:
    """Yield chunks of the search: where it begins and ends, and the share of all trials in it.

    With a limit the end is a guess, and chunks come until the time is over.
    """
    if limit is None:
        yield from ((i / CHUNKS, (i + 1) / CHUNKS, 1 / CHUNKS) for i in range(CHUNKS))
        return
    start, before, now = time.monotonic(), 0.0, 0.0
    while now < 1.0:
        yield now, min(2 * now - before, 1.0), 1 / TRIALS
        before, now = now, (time.monotonic() - start) / max(limit, 1e-9)
