"""Rounds of local search over blocks of clusters with shifting borders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.space import Space, can_be_carved, ladders
from dbanon.anonymization.threads import in_threads
from dbanon.kernels.layout import START, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s


BLOCK = 300
# Rows of many columns are near each other in some columns only, often not those by which blocks
# are cut: they are offered to the clusters of this many rows, if these are more.
ROWS_OF_WIDE = 5_000
# Number of clusters that are cut into blocks at once.
PART = 16_000
# How much the weights of columns vary between rounds, so that borders shift.
_SPREAD = 0.5
# Pairs and triples gain more from more rounds of moves than from being rebuilt in each.
OFTEN_REBUILT, SELDOM = 4, 4


class Effort(NamedTuple):
    """Content of a round: row passes, rebuilds per cluster, most clusters in a rebuild.

    turns: swaps of a row of each cluster with several others at once; heat: accepted relative rise
    of a rebuild's cost; anywhere: share of rebuilds whose rows may move to other clusters; fitting:
    whether rebuilt clusters mostly are those that their rows fit, and grown anew.
    """

    passes: int
    tries: int
    pool: int
    turns: int = 0
    heat: float = 0.0
    anywhere: float = 0.0
    fitting: bool = False


MOVES = Effort(passes=1, tries=0, pool=6)  # what gains most in its time, at first
LIGHT = Effort(passes=1, tries=1, pool=6)
TURNS = LIGHT._replace(turns=1)
# Gains further once the others stagnate: a search that is hot at first and then cools.
ANNEALED = Effort(passes=1, tries=4, pool=6, turns=1, heat=0.05)
# Rows that may go anywhere open and close clusters; if all might, it would gain less.
LARGE = Effort(passes=1, tries=6, pool=3, turns=1, heat=0.045, anywhere=0.3)
PERSONS = Effort(passes=1, tries=4, pool=3, heat=0.025, anywhere=0.2, fitting=True)
MANY_COLUMNS = Effort(passes=1, tries=4, pool=3, turns=1, heat=0.1, anywhere=1.0)


def coordinates(space: Space) -> NDArray[np.float32]:
    """Return every row as a weighted point: ordered columns by position, others by leaf number."""
    points = np.empty(space.codes.shape, np.float32)
    for j, column in enumerate(space.columns):
        place = column.position if column.taxonomy is None else np.arange(column.size) / column.size
        points[:, j] = np.append(place, 1.0)[space.codes[:, j]] * column.rule.weight
    return points


def improve(
    space: Space,
    label: Int32s,
    points: NDArray[np.float32],
    *,
    effort: Effort,
    seed: int,
    number: int,
    over: Callable[[], bool] = lambda: False,
) -> Int32s:
    """Run one round; return the new labels.

    label: (n,) the cluster of each row, 0..g-1 without gaps; points: of ``coordinates``; seed,
    number: of the random choices; over: returns True after the time limit; remaining blocks stay
    unchanged.
    """
    from dbanon.kernels.auto.improve import IMPROVE

    tries = effort.tries if space.k >= OFTEN_REBUILT or number % SELDOM == 0 else 0
    each = effort.passes, tries, effort.pool
    how = effort.turns, round(effort.heat * 1e6), round(effort.anywhere * 1e6), effort.fitting
    draw = (seed * 1_000_003 + number) % 2**63
    random = np.random.default_rng((seed, number))
    rows, row_ends, n_clusters = _blocks(space, label, points, random)
    new, starts = np.empty_like(label), row_ends[:-1]
    run = runner(space)

    def work(block: int) -> None:
        mine = rows[row_ends[block] : row_ends[block + 1]]
        owner: Int32s = np.unique(label[mine], return_inverse=True)[1].astype(np.int32)
        if not over():
            numbers = (space.k, n_clusters[block], *each, draw, block, *how)
            given = space.codes[mine], space.sensitive[mine], owner[None], space.costs.flat
            run(IMPROVE, *given, *numbers)
        new[mine] = owner + starts[block]

    in_threads(work, range(len(n_clusters)))
    return without_gaps(new)


def runner(space: Space) -> Callable[..., None]:
    """Return ``work_on``, given a task, codes, sensitive values, ``found``, costs and numbers."""
    from dbanon.kernels.auto.improve import work_on

    levels = ladders(space) if can_be_carved(space) else None

    def run(task: int, codes: Int32s, of: Int32s, found: Int32s, flat: Floats, *n: int) -> None:
        given = codes, of, flat, space.costs.layout, space.rules, levels
        work_on(task, *given, found, np.array(n, np.int64))

    return run


def without_gaps(label: Int32s) -> Int32s:
    """Return the clusters renumbered in the same order, none empty."""
    used = np.zeros(int(label.max()) + 1, np.bool_)
    used[label] = True
    return (np.cumsum(used, dtype=np.int32) - np.int32(1))[label]


def _blocks(
    space: Space, label: Int32s, points: NDArray[np.float32], random: np.random.Generator
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the rows by block, the end of each block, and its number of clusters."""
    from dbanon.kernels.auto.duplicates import sort_by

    n, n_clusters = len(label), int(label.max()) + 1
    shuffled = random.permutation(n)
    representative = np.empty(n_clusters, np.int64)
    representative[label[shuffled]] = shuffled
    stretch = np.exp(_SPREAD * random.standard_normal(points.shape[1]))
    order, sizes = _neighbours(space, representative, points, stretch)
    block_of = np.empty(n_clusters, np.int32)
    block_of[order] = np.repeat(np.arange(len(sizes)), sizes)
    of_row = block_of[label]
    rows = sort_by(np.arange(n), of_row, len(sizes))
    row_ends = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=len(sizes)))])
    return rows, row_ends, sizes


def _neighbours(
    space: Space, rows: Int64s, points: NDArray[np.float32], stretch: Floats
) -> tuple[Int64s, Int64s]:
    """Return indices into ``rows`` by block of low cost, and block sizes; stretch: (d,) factors."""
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.improve import DIVIDE

    run = runner(space)
    flat, layout = space.costs
    ends_of_columns = np.append(layout[1:, START], len(flat))
    stretched = flat * np.repeat(stretch, ends_of_columns - layout[:, START])
    block = max(BLOCK, ROWS_OF_WIDE // space.k) if len(layout) >= WIDE else BLOCK
    order, ends = halve((points[rows] * stretch).astype(np.float32), PART)

    def work(i: int) -> tuple[Int64s, Int64s]:
        mine = order[ends[i] : ends[i + 1]]
        codes = space.codes[rows[mine]]
        found = np.empty((2, len(mine)), np.int32)
        run(DIVIDE, codes, space.sensitive[:0], found, stretched, block // 4, block)
        return mine[found[0]], _chopped(np.bincount(found[1]), 2 * block)

    parts = in_threads(work, range(len(ends) - 1))
    return np.concatenate([part for part, _ in parts]), np.concatenate([size for _, size in parts])


def _chopped(sizes: Int64s, most: int) -> Int64s:
    """Divide blocks that are too large because their rows are (nearly) equal."""
    pieces = -(-sizes // most)
    return np.concatenate(
        [np.diff(np.arange(p + 1) * size // p) for size, p in zip(sizes, pieces, strict=True)]
    )
