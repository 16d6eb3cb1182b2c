"""The start of a search: blocks, cuts, carved boxes of k rows, or peeling of lattice classes."""

from __future__ import annotations

from functools import partial
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.auto.distribution_cuts import cut_large
from dbanon.anonymization.auto.rounds import LIGHT, coordinates, improve, runner, without_gaps
from dbanon.anonymization.auto.space import Space, can_be_carved, ladders, total_cost
from dbanon.anonymization.loss.costs import renumber_for_cuts
from dbanon.anonymization.threads import in_threads
from dbanon.kernels.layout import DISTINCT, SET, STRIDE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedColumn
    from dbanon.kernels.auto.diversity import Rules
    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s


class Clock:
    """Elapsed share of a time limit in seconds, without ``waited()``, the time of compilation."""

    def __init__(
        self, limit: float | None = None, waited: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._limit, self._waited = limit, waited
        self._began = monotonic() - waited()

    @property
    def _used(self) -> float:
        return monotonic() - self._began - self._waited()

    @property
    def share(self) -> float:
        """Used share of the limit, 1 after it; 0 without a limit."""
        if self._limit is None:
            return 0.0
        used = self._used
        return used / self._limit if used < self._limit else 1.0

    @property
    def left(self) -> float:
        """Remaining seconds, at least 0; infinite without a limit."""
        return inf if self._limit is None else max(0.0, self._limit - self._used)

    def over(self) -> bool:
        """Return True after the time limit."""
        return self.left <= 0.0

    def overdue(self) -> bool:
        """Return True so long after the time limit that unfinished tasks are abandoned."""
        return self._limit is not None and self._used > (1 + _GRACE) * max(self._limit, 1.0)


_GRACE = 0.1


MAX_NODES = 120_000
# Tuples looked up before peeling ends: of the whole table, and beyond that of each tuple.
LOOKUPS, OF_EACH = 200_000_000, 20
_COMPARED_A_SECOND = 4_000_000  # if they do not fit into a processor's cache
_WIDTHS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50)


class Level(NamedTuple):
    """A generalization of a column: the class of each code, NULL last, (size + 1,), and cost."""

    classes: Int64s
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


def _tree_levels(column: EncodedColumn, shares: Floats) -> list[Level]:
    """Return the ancestors of the leaves, level by level; NULL stays alone."""
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
    """Return the levels of every column, thinned to MAX_NODES nodes; None if that is too few."""
    levels = [column_levels(column) for column in space.columns]
    while prod(len(chain) for chain in levels) > MAX_NODES:
        longest = max(range(len(levels)), key=lambda j: len(levels[j]))
        chain = levels[longest]
        if len(chain) <= 3:  # noqa: PLR2004 - values, one step between, everything
            return None
        levels[longest] = [chain[0], *chain[1 + (len(chain) + 1) % 2 : -1 : 2], chain[-1]]
    return levels


def start_by_peeling(
    space: Space, levels: list[list[Level]], *, seed: int, clock: Clock | None = None
) -> Int32s:
    """Return the cluster of each row by peeling; space: rows sorted by tuple.

    The remaining rows, with the last classes if they violate the rules, are grouped by blocks.
    """
    clock = clock or Clock()
    peeled = peel_off(space, levels, lookups=affordable_lookups(tuples(space), clock))
    return complete(space, peeled, seed=seed, over=clock.over)


def tuples(space: Space) -> int:
    """Return the number of tuples of the sorted rows."""
    return len(_bounds(space)) - 1


def affordable_lookups(n_tuples: int, clock: Clock) -> int:
    """Return how many tuples can be looked up, in at most a third of the remaining time."""
    most = LOOKUPS + OF_EACH * n_tuples
    return int(min(most, clock.left * _COMPARED_A_SECOND / 3))


def _bounds(space: Space) -> Int64s:
    """Return the start of each tuple, (u + 1,)."""
    changes = (space.codes[1:] != space.codes[:-1]).any(axis=1)
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [space.n_rows]])


def complete(
    space: Space, label: Int32s, *, seed: int, over: Callable[[], bool] = lambda: False
) -> Int32s:
    """Return the cluster of each row, given the peeled classes, -1 for the rest."""
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


def _holds(space: Space, rules: Rules, rows: Int64s) -> bool:
    """Return True if the rows can be a cluster; all rows together can."""
    from dbanon.kernels.auto.diversity import rows_hold

    if len(rows) == space.n_rows:
        return True
    return len(rows) >= space.k and bool(rows_hold(rules, rows))


def _worth(label: Int32s, n_classes: int, n_rows: int) -> int:
    """Return how many classes to keep if the last ones, dissolved, have ``n_rows`` rows."""
    sizes = np.bincount(label[label >= 0], minlength=n_classes)
    given_up = np.cumsum(sizes[::-1])
    return max(0, n_classes - 1 - int(np.searchsorted(given_up, n_rows)))


def peel_off(space: Space, levels: list[list[Level]], *, lookups: int) -> Int32s:
    """Return the class of each row, -1 for the rest after ``lookups`` tuples."""
    from dbanon.kernels.auto.carving import peel as peel_tuples
    from dbanon.kernels.auto.diversity import make_rules

    bounds = _bounds(space)
    costs = np.zeros(1)
    shape = [len(chain) for chain in levels]
    for chain in levels:
        costs = np.add.outer(costs, [level.cost for level in chain]).ravel()
    order = np.argsort(costs, kind="stable")
    nodes = np.stack(np.unravel_index(order, shape), axis=1).astype(np.int16)
    begin = np.zeros((len(levels), max(shape)), np.int64)
    marks: list[UInt64s] = []
    at = 0
    random = np.random.default_rng(0)
    for j, chain in enumerate(levels):
        for i, level in enumerate(chain):
            drawn = random.integers(0, 2**64, int(level.classes.max()) + 1, np.uint64)
            mark = drawn[level.classes]
            begin[j, i] = at
            marks.append(mark - marks[-i] if i > 0 else mark)
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


# Rows of a segment, in k: fewer cost much, more gain little.
_FEWEST, _MOST = 100, 600
# Times k rows near a seed, and how often a box is widened and shrunk again.
_NEAR, _TRIES = 6, 2
# Inspections of each cell per seed; a seed is chosen again when its rows are taken.
_LOOKS = 4
_A_SECOND = 2.0e8


# Cuts of more rows are a little better; these leave every processor something to do.
_SEGMENT = 16_000


BLOCKS, CUTS, PEELING, CARVING = "blocks", "cuts", "peeling", "carving"
# The starts are compared on samples of this many neighbours, or clusters of k if these are more,
# in this number of places, after two rounds.
_SAMPLE, _CLUSTERS = 4_000, 100
_PLACES = 3
_ROUNDS = 2
# The rounds lower the loss of a start by a quarter at most.
_HOPELESS = 1.4
# Peeling pays if it has grouped most rows after this many lookups of each tuple: with dense
# columns, most nodes group few rows, and blocks lose less in the same time.
_LOOKUPS, _MOST_LEFT, _IN_SAMPLES = 4_000, 0.1, 40_000_000
# Peeling does not find classes of this many times k rows on average.
_LARGE = 4


class Start(NamedTuple):
    """Initial clusters, (n,) int32, and the name of the method."""

    label: Int32s
    name: str


class Carving(NamedTuple):
    """Limits of carving: seeds per cluster, and cells to inspect."""

    seeds: int
    work: float


USUAL = Carving(4, 6.0e9)


class Carved(NamedTuple):
    """How to carve clusters: seeds for each, and rows carved at once."""

    seeds: int
    segment: int


def carved_by(space: Space, carving: Carving, clock: Clock) -> Carved | None:
    """Return how to carve within the limits and a third of the time, None if impossible."""
    if not can_be_carved(space) or _is_scarce(space):
        return None
    seeds, work = carving
    segment = segment_for(space, seeds=seeds, work=work, seconds=clock.left / 3)
    return Carved(seeds, segment) if segment > 0 else None


def start(
    space: Space, *, seed: int, clock: Clock | None = None, carving: Carving = USUAL
) -> Start:
    """Make the initial clusters with the method that loses least on a sample.

    space: rows sorted by tuple; clock: after its limit, the rest is made as quickly as possible.
    Sampling is needed: with distinct rows, peeling may win by 18 % or fail.
    """
    clock = clock or Clock()
    samples = [] if clock.over() else _samples(space)
    ways = _ways(space, samples, seed=seed, clock=clock, carving=carving)
    name = BLOCKS
    if samples and len(ways) > 1:
        found = [way.on_samples() for way in ways]
        best = _least_lost(samples, found, seed=seed)
        name = ways[best].name
        if name == CARVING and samples[0].n_rows == space.n_rows:
            return Start(cut_large(space, found[best][0], over=clock.over), name)
    (make,) = [way.make for way in ways if way.name == name]
    return Start(cut_large(space, make(), over=clock.over), name)


def _least_lost(samples: list[Space], found: list[list[Int32s]], *, seed: int) -> int:
    """Return the start that loses least after some rounds, among those that may."""
    before = np.array([sum(map(total_cost, samples, labels)) for labels in found])
    near = np.flatnonzero(before <= _HOPELESS * before.min())
    if len(near) == 1:
        return int(near[0])
    after = partial(_loss_after, seed=seed)
    return int(near[np.argmin([sum(map(after, samples, found[i])) for i in near])])


class _Way(NamedTuple):
    """A method to start: its name, its result for samples, and for the whole."""

    name: str
    on_samples: Callable[[], list[Int32s]]
    make: Callable[[], Int32s]


def _ways(
    space: Space, samples: list[Space], *, seed: int, clock: Clock, carving: Carving
) -> list[_Way]:
    """Return the possible methods to start, blocks first."""

    def in_blocks(part: Space) -> Int32s:
        return start_in_blocks(part, seed=seed, over=clock.over)

    def in_cuts(part: Space) -> Int32s:
        return start_in_cuts(part, over=clock.over)

    def by_carving(part: Space, how: Carved) -> Int32s:
        most = how.segment if part is space else part.n_rows
        return start_by_carving(part, seeds=how.seeds, segment=most, seed=seed, over=clock.over)

    def on_samples(make: Callable[[Space], Int32s]) -> Callable[[], list[Int32s]]:
        return lambda: [make(part) for part in samples]

    ways = [_Way(BLOCKS, on_samples(in_blocks), partial(in_blocks, space))]
    peeled, levels = None, None
    if not _is_scarce(space):
        peeled, levels = _try_peeling(space, samples, seed=seed, clock=clock)
    if peeled is not None and levels is not None:
        make = partial(start_by_peeling, space, levels, seed=seed, clock=clock)
        ways.append(_Way(PEELING, lambda: peeled, make))
    elif can_be_cut(space):
        ways.append(_Way(CUTS, on_samples(in_cuts), partial(in_cuts, space)))
    carved = carved_by(space, carving, clock)
    if carved is not None:
        carve = partial(by_carving, how=carved)
        ways.append(_Way(CARVING, on_samples(carve), partial(carve, space)))
    return ways


def _try_peeling(
    space: Space, samples: list[Space], *, seed: int, clock: Clock
) -> tuple[list[Int32s] | None, list[list[Level]] | None]:
    """Return peeled samples, and the lattice; None if peeling makes no progress."""
    n_tuples = tuples(space)
    lookups = min(_LOOKUPS, affordable_lookups(n_tuples, clock) // n_tuples)
    levels = lattice(space) if lookups > 0 else None
    if levels is None or not samples:
        return None, None
    return _peeled(samples, levels, lookups=lookups, seed=seed), levels


def _peeled(
    samples: list[Space], levels: list[list[Level]], *, lookups: int, seed: int
) -> list[Int32s] | None:
    """Return peeled samples, None if one is not finished in ``lookups`` per tuple."""
    labels = []
    for part in samples:
        most = min(lookups * tuples(part), _IN_SAMPLES)
        peeled = peel_off(part, levels, lookups=most)
        if (peeled < 0).mean() > _MOST_LEFT:
            return None
        labels.append(complete(part, peeled, seed=seed))
    return labels


def _is_scarce(space: Space) -> bool:
    """Return True if rare sensitive values, which peeling uses up early, make classes large."""
    n_classes = space.n_rows // (_LARGE * space.k)
    for kind, column, limits in zip(*space.rules, strict=True):
        counts = np.bincount(space.sensitive[:, column])
        if kind == DISTINCT and np.minimum(counts, n_classes).sum() < limits[0] * n_classes:
            return True
    return False


def _samples(space: Space) -> list[Space]:
    order, ends = segments(space, coordinates(space), most=max(_SAMPLE, _CLUSTERS * space.k))
    n_segments = len(ends) - 1
    places = _PLACES if n_segments > 10 * _PLACES else 1
    picked = np.linspace(0, n_segments - 1, places + 2).astype(int)[1:-1]
    return [space.take(np.sort(order[ends[i] : ends[i + 1]])) for i in picked]


def _loss_after(space: Space, label: Int32s, *, seed: int) -> float:
    points = coordinates(space)
    for number in range(_ROUNDS):
        label = improve(space, label, points, effort=LIGHT, seed=seed, number=number)
    return total_cost(space, label)


def can_be_cut(space: Space) -> bool:
    """Return True if cuts can keep the rules, and no column is published as sets."""
    is_set = space.costs.layout[:, STRIDE] == SET
    return space.counts_distinct and not is_set.any()


def start_in_cuts(space: Space, *, over: Callable[[], bool] = lambda: False) -> Int32s:
    """Return the cluster of each row; the space as a whole must meet the rules.

    Leaves of a taxonomy are numbered so that a cut can separate a single frequent value, unlike in
    blocks. over: returns True after the time limit; remaining segments are cut quickly. O(n d^2
    log(n / k)).
    """
    from dbanon.kernels.boxes.mondrian import mondrian

    codes = space.codes.copy()
    costs = renumber_for_cuts(space.columns, codes)
    least = max(1, int(space.rules[2][:, 0].max(initial=1)))
    cardinality, relaxed = int(space.sensitive.max(initial=0)) + 1, False

    def make(part: Space, mine: Int64s) -> Int32s:
        numbers = np.arange(len(mine), dtype=np.int32)
        rows = np.column_stack([codes[mine], part.sensitive, numbers])
        return mondrian(rows, *costs, space.k, least, cardinality, relaxed)[0]

    return _by_segments(space, make, most=max(_SEGMENT, 40 * space.k), over=over)


def _by_segments(
    space: Space,
    make: Callable[[Space, Int64s], Int32s],
    *,
    most: int,
    over: Callable[[], bool],
    in_order: bool = False,
) -> Int32s:
    """Return the cluster of each row, made in segments of ``most`` rows; after ``over``, quickly.

    make: returns the clusters of a part, given its rows, which ascend if ``in_order``.
    """
    order, ends = segments(space, coordinates(space), most=most)
    label = np.empty(space.n_rows, np.int32)

    def work(i: int) -> None:
        mine = order[ends[i] : ends[i + 1]]
        mine = np.sort(mine) if in_order else mine
        part = space.take(mine)
        label[mine] = (start_quickly(part) if over() else make(part, mine)) + ends[i]

    in_threads(work, range(len(ends) - 1))
    return without_gaps(label)


def segment_for(space: Space, *, seeds: int, work: float, seconds: float = inf) -> int:
    """Return how many rows to carve at once within ``work`` cells and seconds, 0 if too little."""
    cells = min(work, seconds * _A_SECOND)
    of_a_row = space.n_rows / space.k * seeds * _LOOKS * space.codes.shape[1]
    rows = int(min(cells / of_a_row, _MOST * space.k))
    return rows if rows >= min(_FEWEST * space.k, space.n_rows) else 0


def start_by_carving(
    space: Space, *, seeds: int, segment: int, seed: int, over: Callable[[], bool] = lambda: False
) -> Int32s:
    """Return the cluster of each row by carving the cheapest box of some seeds for each cluster.

    segment: rows carved at once; over: returns True after the time limit; the rest is cut quickly.
    """
    from dbanon.kernels.auto.carving import carve

    levels = ladders(space)
    numbers = np.array((space.k, seeds, _NEAR, _TRIES, seed), np.int64)

    def make(part: Space, _: Int64s) -> Int32s:
        carved = carve(part.codes, part.sensitive, *space.costs, space.rules, levels, numbers)
        return complete(part, carved, seed=seed, over=over)

    return _by_segments(space, make, most=segment, over=over, in_order=True)


SEGMENT = 4_000
# Of many columns more rows are near in some, and a greedy group is worth looking for among more.
_ROWS_OF_WIDE = 2_000


def start_in_blocks(space: Space, *, seed: int, over: Callable[[], bool] = lambda: False) -> Int32s:
    """Return the cluster of each row; after ``over``, segments are cut as quickly as possible."""
    from dbanon.kernels.auto.improve import GROW

    run = runner(space)
    block = max(_ROWS_OF_WIDE if space.codes.shape[1] >= WIDE else 500, 10 * space.k)

    def make(part: Space, _: Int64s) -> Int32s:
        label = np.empty(part.n_rows, np.int32)
        run(GROW, part.codes, part.sensitive, label[None], space.costs.flat, space.k, seed, block)
        return label

    return _by_segments(space, make, most=max(SEGMENT, 40 * space.k), over=over)


def segments(space: Space, points: NDArray[np.float32], *, most: int) -> tuple[Int64s, Int64s]:
    """Return the rows in order of segments, and the end of each; every segment meets the rules."""
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.diversity import make_rules, rows_hold

    order, ends = halve(points, most)
    if not space.has_rules:
        return order, ends
    rules = make_rules(*space.rules, space.sensitive)
    kept = [0]
    for end in ends[1:].tolist():
        if rows_hold(rules, order[kept[-1] : end]):
            kept.append(end)
    if kept[-1] != len(order):
        kept[-1:] = [len(order)] if len(kept) > 1 else [0, len(order)]
    return order, np.array(kept)


def start_quickly(space: Space) -> Int32s:
    """Return the cluster of each row, by halving or dealing; O(n log n) for each rule.

    Halves rows at the median of the widest column while both halves meet the rules. If the first
    halves do not, deals the rows of each value to clusters.
    """
    from dbanon.kernels.auto.blocks import halve
    from dbanon.kernels.auto.diversity import make_rules, rows_hold

    most = 2 * space.k - 1
    order, _ = halve(coordinates(space), most)
    rules = make_rules(*space.rules, space.sensitive)

    def parts(start: int, stop: int) -> list[int] | None:
        """Return the ends of the clusters of some rows, None if they cannot meet the rules."""
        if stop - start > most:
            middle = (start + stop) // 2
            left, right = parts(start, middle), parts(middle, stop)
            if left is not None and right is not None:
                return [*left, *right]
        holds = not space.has_rules or rows_hold(rules, order[start:stop])
        return [stop] if holds else None

    ends = parts(0, space.n_rows) or [space.n_rows]
    label = np.empty(space.n_rows, np.int32)
    label[order] = np.repeat(np.arange(len(ends)), np.diff([0, *ends]))
    return label if len(ends) > 1 else _dealt(space, order, rules)


def _dealt(space: Space, order: Int64s, rules: Rules) -> Int32s:
    """Return clusters with the same share of the rows of each value, dealt in order."""
    from dbanon.kernels.auto.diversity import labels_hold

    columns = np.unique(space.rules[1])
    key = np.unique(space.sensitive[order][:, columns], axis=0, return_inverse=True)[1].ravel()
    by_key = np.argsort(key, kind="stable")
    counts = np.bincount(key)
    rank = np.arange(space.n_rows) - np.repeat(np.cumsum(counts) - counts, counts)
    label = np.zeros(space.n_rows, np.int32)
    n_clusters = space.n_rows // space.k
    while n_clusters > 1:
        label[order[by_key]] = rank * n_clusters // np.repeat(counts, counts)
        sizes = np.bincount(label, minlength=n_clusters)
        if sizes.min() >= space.k and labels_hold(rules, label, n_clusters):
            return label
        n_clusters //= 2
    return np.zeros(space.n_rows, np.int32)
