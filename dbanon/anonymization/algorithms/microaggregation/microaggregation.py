"""Microaggregation by local and large-neighbourhood search."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.algorithms.microaggregation.points import mdav_points
from dbanon.anonymization.algorithms.microaggregation.regions import rebuild, start
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.kernels.arrays import Floats, Int32s

SMALL = 10_000  # rows
TRIALS, TRIALS_OF_SMALL, TRIALS_OF_LARGE = 200.0, 4.0, 1.0  # for each row: best, fast
CHUNKS = 16


@dataclass(frozen=True, slots=True)
class Microaggregation:
    """Groups of k to 2k - 1 rows of least squared error around their means.

    effort "fast": MDAV in blocks of at most 250 rows, then local search that relocates and swaps
    rows and dissolves and creates groups, and a short form of what follows.
    "best" adds large-neighbourhood search (POPMUSIC, Taillard and Voss 2002): random unions of 3
    to 7 groups are built anew, ``trials`` times for each row, 200 unless given and fewer for k
    above 10, or for ``time_limit`` seconds, which alone depends on the machine. Larger
    tables are searched in regions of at most 65,536 rows.

    Rows are points as ``mdav_points`` says; the distances are those of MDAV-generic. Ties go to the
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
            points = mdav_points(table)
            group = self._search(points, start(points, k), k=k, seed=seed)
        return repair(table, Assignment(group, int(group.max()) + 1), requirement)

    def _search(self, points: Floats, group: Int32s, *, k: int, seed: int) -> Int32s:
        dear = min(1.0, (10 / k) ** 2)
        trials = TRIALS_OF_SMALL if len(points) <= SMALL else TRIALS_OF_LARGE
        clock = _clock(None, chunks=1)
        if self.effort == "best":
            trials, clock = TRIALS, _clock(self.time_limit, chunks=CHUNKS)
        trials = trials * dear if self.trials is None else self.trials
        random = np.random.default_rng(seed)
        return rebuild(points, group, k=k, trials=trials, clock=clock, random=random)


def _clock(limit: float | None, *, chunks: int) -> Iterator[tuple[float, float, float]]:
    """Yield chunks of the search: where it begins and ends, and the share of all trials in it.

    With a limit the end is a guess, and chunks come until the time is over.
    """
    if limit is None:
        yield from ((i / chunks, (i + 1) / chunks, 1 / chunks) for i in range(chunks))
        return
    start, before, now = time.monotonic(), 0.0, 0.0
    while now < 1.0:
        yield now, min(2 * now - before, 1.0), 1 / TRIALS
        before, now = now, (time.monotonic() - start) / max(limit, 1e-9)
