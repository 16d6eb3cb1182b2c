"""The start for columns of few values: classes of a generalization lattice, cheapest first."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.block_start import start_in_blocks
from dbanon.anonymization.auto.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Space
    from dbanon.domain.assignment import EncodedColumn
    from dbanon.kernels.auto.diversity import Rules

MAX_NODES = 120_000
# Tuples looked up before peeling ends: of the whole table, and beyond that of each tuple.
LOOKUPS, OF_EACH = 200_000_000, 20
_A_SECOND = 4_000_000  # so many if they do not fit into a processor's cache
_WIDTHS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50)


class Level(NamedTuple):
    """One way to generalize a column: the class of each code, NULL last, (size + 1,), and cost."""

    classes: NDArray[np.int64]
    cost: float


def column_levels(column: EncodedColumn) -> list[Level]:
    """Return the levels of a column, from the values themselves to everything."""
    counts = np.bincount(column.codes, minlength=column.size + 1)
    weight = column.rule.weight
    if column.taxonomy is None:
        levels = _interval_levels(column)
    else:
        levels = _tree_levels(column, counts / max(counts.sum(), 1))
    everything = Level(np.zeros(column.size + 1, np.int64), 1.0)
    return [Level(level.classes, level.cost * weight) for level in (*levels, everything)]


def _interval_levels(column: EncodedColumn) -> list[Level]:
    """Return the values, and intervals of growing width in two phases; NULL stays alone."""
    exact = np.arange(column.size + 1)
    levels = [Level(exact, 0.0)]
    if column.size < 3:  # noqa: PLR2004 - nothing lies between the values and everything
        return levels
    gap = 1.0 / (column.size - 1)
    stretch = max(1.0, column.size / (2 * _WIDTHS[-1]))
    widths = [w * gap * stretch ** (i / (len(_WIDTHS) - 1)) for i, w in enumerate(_WIDTHS)]
    for width in widths:
        if width >= 1.0:
            break
        for phase in (0.0, width / 2):
            slots = np.floor((column.position + phase) / width + 1e-9).astype(np.int64)
            levels.append(Level(np.append(slots + 1, 0), 0.9 * (width - gap)))
    return levels


def _tree_levels(column: EncodedColumn, shares: NDArray[np.float64]) -> list[Level]:
    """Return the ancestors of the leaves, one step up a level; NULL stays alone."""
    taxonomy = column.taxonomy
    assert taxonomy is not None  # noqa: S101 - the caller looked
    node = taxonomy.leaves.astype(np.int64)
    size = (taxonomy.leaf_hi - taxonomy.leaf_lo + 1) / taxonomy.n_leaves
    levels = []
    for _ in range(max(taxonomy.height, 1)):
        leaf = taxonomy.leaf_hi[node] == taxonomy.leaf_lo[node]
        cost = float((np.where(leaf, 0.0, size[node]) * shares[:-1]).sum())
        levels.append(Level(np.append(node, len(taxonomy.labels)), cost))
        node = np.where(taxonomy.parent[node] >= 0, taxonomy.parent[node], 0)
    return levels


def lattice(space: Space) -> list[list[Level]] | None:
    """Return the levels of every column, thinned to MAX_NODES nodes; None when that is too few."""
    levels = [column_levels(column) for column in space.columns]
    while prod(len(chain) for chain in levels) > MAX_NODES:
        longest = max(range(len(levels)), key=lambda j: len(levels[j]))
        chain = levels[longest]
        if len(chain) <= 3:  # noqa: PLR2004 - values, one step between, everything
            return None
        levels[longest] = [chain[0], *chain[1:-1:2], chain[-1]] if len(chain) % 2 else _thin(chain)
    return levels


def _thin(chain: list[Level]) -> list[Level]:
    return [chain[0], *chain[2:-1:2], chain[-1]]


def start_by_peeling(
    space: Space, levels: list[list[Level]], *, seed: int, clock: Clock | None = None
) -> NDArray[np.int32]:
    """Return the cluster of each row; the space as a whole must keep the rules.

    space: rows in the order of their tuples. What no node takes in is grouped by blocks, together
    with the last classes, as many rows of them, where it does not keep the rules by itself.
    """
    clock = clock or Clock()
    peeled = peel_off(space, levels, lookups=affordable_lookups(tuples(space), clock))
    return complete(space, peeled, seed=seed, over=clock.over)


def tuples(space: Space) -> int:
    """Return how many tuples the rows have, which are in the order of their tuples."""
    return len(_bounds(space)) - 1


def affordable_lookups(n_tuples: int, clock: Clock) -> int:
    """Return how many tuples may be looked up, in a third of the time that is left at most."""
    most = LOOKUPS + OF_EACH * n_tuples
    return int(min(most, clock.left * _A_SECOND / 3))


def _bounds(space: Space) -> NDArray[np.int64]:
    """Return where the rows of each tuple begin, (u + 1,)."""
    changes = (space.codes[1:] != space.codes[:-1]).any(axis=1)
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [space.n_rows]])


def complete(
    space: Space,
    label: NDArray[np.int32],
    *,
    seed: int,
    over: Callable[[], bool] = lambda: False,
) -> NDArray[np.int32]:
    """Return the cluster of each row, given the classes that were peeled off, -1 for the rest."""
    from dbanon.kernels.auto.diversity import make_rules

    rules = make_rules(*space.rules, space.sensitive)
    kept = int(label.max()) + 1
    left = np.flatnonzero(label < 0)
    if len(left) > 0 and not _holds(space, rules, left):
        kept = _worth(label, kept, len(left))
        while not _holds(space, rules, left := np.flatnonzero((label < 0) | (label >= kept))):
            kept //= 2
    if len(left) > 0:
        label[left] = kept + start_in_blocks(space.take(left), seed=seed, over=over)
    return label


def _holds(space: Space, rules: Rules, rows: NDArray[np.int64]) -> bool:
    """Whether rows can be a cluster; all rows together can."""
    from dbanon.kernels.auto.diversity import rows_hold

    if len(rows) == space.n_rows:
        return True
    return len(rows) >= space.k and bool(rows_hold(rules, rows))


def _worth(label: NDArray[np.int32], n_classes: int, n_rows: int) -> int:
    """Return how many classes to keep so that the last ones, given up, have ``n_rows`` rows.

    Fewer would leave one large cluster where a sensitive value is rare: the classes have used it
    up.
    """
    sizes = np.bincount(label[label >= 0], minlength=n_classes)
    given_up = np.cumsum(sizes[::-1])
    return max(0, n_classes - 1 - int(np.searchsorted(given_up, n_rows)))


def peel_off(space: Space, levels: list[list[Level]], *, lookups: int) -> NDArray[np.int32]:
    """Return the class of each row, -1 for what is left after so many lookups of tuples."""
    from dbanon.kernels.auto.diversity import make_rules
    from dbanon.kernels.auto.peel import peel as peel_tuples

    bounds = _bounds(space)
    costs = np.zeros(1)
    shape = [len(chain) for chain in levels]
    for chain in levels:
        costs = np.add.outer(costs, [level.cost for level in chain]).ravel()
    order = np.argsort(costs, kind="stable")
    nodes = np.stack(np.unravel_index(order, shape), axis=1).astype(np.int16)
    begin = np.zeros((len(levels), max(shape)), np.int64)
    marks: list[NDArray[np.uint64]] = []
    at = 0
    random = np.random.default_rng(0)
    for j, chain in enumerate(levels):
        for i, level in enumerate(chain):
            drawn = random.integers(0, 2**64, int(level.classes.max()) + 1, np.uint64)
            begin[j, i] = at
            marks.append(drawn[level.classes])
            at += len(level.classes)
    label = peel_tuples(
        np.concatenate(marks),
        begin,
        nodes,
        np.ascontiguousarray(space.codes[bounds[:-1]]),
        bounds,
        make_rules(*space.rules, space.sensitive),
        space.k,
        lookups,
    )
    return np.repeat(label, np.diff(bounds))
