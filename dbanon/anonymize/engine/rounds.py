"""Rounds of local search over blocks of clusters whose borders shift."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymize.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.engine.space import Space

BLOCK = 200
# Pairs and triples gain more from more rounds of moves than from being rebuilt in each.
OFTEN_REBUILT, SELDOM = 4, 4


class Effort(NamedTuple):
    """What a round does: row passes, rebuilds for each cluster, most clusters in a rebuild."""

    passes: int
    tries: int
    pool: int


LIGHT = Effort(passes=1, tries=1, pool=4)
HEAVY = Effort(passes=1, tries=4, pool=5)


def coordinates(space: Space) -> NDArray[np.float32]:
    """Return every row as a point, weighted: ordered columns by position, others by leaf number."""
    points = np.empty(space.codes.shape, np.float32)
    for j, column in enumerate(space.columns):
        place = column.position if column.taxonomy is None else np.arange(column.size) / column.size
        points[:, j] = np.append(place, 1.0)[space.codes[:, j]] * column.rule.weight
    return points


def improve(
    space: Space,
    label: NDArray[np.int32],
    points: NDArray[np.float32],
    *,
    effort: Effort,
    seed: int,
    number: int,
) -> NDArray[np.int32]:
    """Run one round; return the new labels.

    label: (n,) the cluster of each row, 0..g-1 without gaps; points: of ``coordinates``; seed and
    number make the round's random choices.
    """
    from dbanon.kernels.improve import improve_block

    random = np.random.default_rng((seed, number))
    rows, row_ends, n_clusters = _blocks(label, points, random)
    new = np.empty_like(label)
    starts = np.concatenate([[0], np.cumsum(np.diff(row_ends))])[:-1]

    def work(block: int) -> None:
        mine = rows[row_ends[block] : row_ends[block + 1]]
        owner: NDArray[np.int32] = np.unique(label[mine], return_inverse=True)[1].astype(np.int32)
        tries = effort.tries if space.k >= OFTEN_REBUILT or number % SELDOM == 0 else 0
        numbers = (space.k, n_clusters[block], effort.passes, tries, effort.pool)
        draw = ((seed * 1_000_003 + number) % 2**63, block)
        improve_block(
            space.codes[mine],
            space.sensitive[mine],
            space.costs.flat.copy(),
            space.costs.layout.copy(),
            space.rules,
            owner,
            np.array((*numbers, *draw), np.int64),
        )
        new[mine] = owner + starts[block]

    in_threads(work, range(len(n_clusters)))
    return np.unique(new, return_inverse=True)[1].astype(np.int32)


def _blocks(
    label: NDArray[np.int32], points: NDArray[np.float32], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows by block, where each block ends, and how many clusters it has."""
    from dbanon.kernels.shifting import halve

    n, n_clusters = len(label), int(label.max()) + 1
    shuffled = random.permutation(n)
    representative = np.empty(n_clusters, np.int64)
    representative[label[shuffled]] = shuffled
    stretch = np.exp(0.7 * random.standard_normal(points.shape[1])).astype(np.float32)
    order, ends = halve(points[representative] * stretch, BLOCK)
    block_of = np.empty(n_clusters, np.int32)
    block_of[order] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    of_row = block_of[label]
    rows = np.argsort(of_row, kind="stable")
    row_ends = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=len(ends) - 1))])
    return rows, row_ends, np.diff(ends)
