"""Groups of k to 2k - 1 points by MDAV, local search and rebuilding, region by region.

Regions are independent tasks; how many there are and what they draw does not depend on how many
processors work on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbanon.kernels.arrays import Floats, Int32s, Int64s, UInt64s

BLOCK, REGION = 250, 1 << 16  # rows: of a task of MDAV, and of a task of local search
SWEEPS = 4
SMALL = 10_000  # rows of a region: up to here the nearest rows are exact
NEAR_OF_SMALL, NEAR_OF_LARGE = (8, 1.0), (6, 3.0)  # how many, and the slack of finding them
HEAT = 0.1
CHUNKS_OF_LAYOUT = 4


def _regions(points: Floats, shares: Floats, *, k: int) -> list[Int64s]:
    """Return the rows of each region, cut at multiples of k."""
    from dbanon.kernels.points.kdtree import split

    rows = np.arange(len(points))
    starts = split(points.copy(), rows, shares, k)
    return np.split(rows, starts[1:-1])


def _n_parts(n: int, most: int, *, k: int) -> int:
    """Return a power of two of parts of at most ``most`` rows, or of at least 2k."""
    parts = 1
    while n > most * parts and n >= 4 * k * parts:
        parts *= 2
    return parts


def _near(n: int) -> tuple[int, float]:
    """Return how many nearest rows to find for each of n rows, and with which slack."""
    most, slack = NEAR_OF_SMALL if n <= SMALL else NEAR_OF_LARGE
    return min(most, n - 1), slack


def _join(rows: list[Int64s], groups: list[Int32s], n: int) -> Int32s:
    """Give the groups of all regions numbers of their own."""
    group, n_groups = np.empty(n, np.int32), 0
    for of_region, inside in zip(rows, groups, strict=True):
        group[of_region] = inside + n_groups
        n_groups += int(inside.max()) + 1
    return group


def start(points: Floats, k: int) -> Int32s:
    """Return MDAV's groups in blocks after local search; n >= 2k. O(n log n)."""
    from dbanon.kernels.points.microaggregation import blocks, polish

    def begin(rows: Int64s) -> Int32s:
        inside = points[rows]
        group = blocks(inside, k, _n_parts(len(rows), BLOCK, k=k))
        return polish(inside, group, k, *_near(len(rows)), SWEEPS)

    regions = _regions(points, np.full(_n_parts(len(points), REGION, k=k), 0.5), k=k)
    return _join(regions, in_threads(begin, regions), len(points))


def _layout(points: Floats, group: Int32s, *, k: int, random: np.random.Generator) -> list[Int64s]:
    """Return the rows of regions of whole groups, cut anew at random."""
    n_parts = _n_parts(len(points), REGION, k=k)
    if n_parts == 1:
        return [np.arange(len(points))]
    size = np.bincount(group)
    means = np.empty((len(size), points.shape[1]))
    for j in range(points.shape[1]):
        means[:, j] = np.bincount(group, points[:, j]) / size
    region = np.empty(len(size), np.int64)
    for i, groups in enumerate(_regions(means, random.uniform(0.4, 0.6, n_parts), k=1)):
        region[groups] = i
    order = np.argsort(region[group], kind="stable")
    return np.split(order, np.cumsum(np.bincount(region[group]))[:-1])


class _Region(NamedTuple):
    """Rows, their points, and the places of the nearest of them."""

    rows: Int64s
    points: Floats
    near: Int32s


def _region(points: Floats, rows: Int64s) -> _Region:
    from dbanon.kernels.points.microaggregation import near_rows

    order, near = near_rows(points[rows], *_near(len(rows)))
    return _Region(rows[order], points[rows[order]], near)


def rebuild(
    points: Floats,
    group: Int32s,
    *,
    k: int,
    trials: float,
    clock: Iterable[tuple[float, float, float]],
    random: np.random.Generator,
) -> Int32s:
    """Return better groups by large-neighbourhood search.

    trials: unions built anew for each row; clock: begin and end of each chunk in [0, 1], which
    set the temperature, and the share of the trials that it makes.
    """
    from dbanon.kernels.points.large_neighbourhood import rebuild as rebuild_region

    best, gained, most = group, 0.0, 0.0
    regions: list[_Region] = []
    for i, (begin, end, share) in enumerate(clock):
        if not regions or (len(regions) > 1 and i % CHUNKS_OF_LAYOUT == 0):
            layout = _layout(points, group, k=k, random=random)
            regions = in_threads(lambda rows: _region(points, rows), layout)
        heat = HEAT * (1 - begin) ** 2, HEAT * (1 - end) ** 2
        seeds = random.integers(1 << 63, size=(len(regions), 1), dtype=np.uint64)

        def chunk(
            task: tuple[_Region, UInt64s],
            group: Int32s = group,
            heat: tuple[float, float] = heat,
            share: float = share,
        ) -> tuple[Int32s, Int32s, float, float]:
            (rows, inside, near), state = task
            labels = np.unique(group[rows], return_inverse=True)[1].astype(np.int32)
            n_trials = int(np.ceil(trials * share * len(rows)))
            return rebuild_region(inside, labels, k, near, n_trials, heat, state)

        found = in_threads(chunk, zip(regions, seeds, strict=True))
        rows = [region.rows for region in regions]
        if (gain := gained + sum(part[3] for part in found)) > most:
            best, most = _join(rows, [part[1] for part in found], len(points)), gain
        gained += sum(part[2] for part in found)
        group = _join(rows, [part[0] for part in found], len(points))
    return best
