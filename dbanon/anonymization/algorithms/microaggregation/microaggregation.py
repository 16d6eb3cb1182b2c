"""Microaggregation: local and large-neighbourhood search, and along one axis.

MDAV, local search and rebuilding make groups of k to 2k - 1 points, region by region. Regions and
their random draws do not depend on the number of processors. Along an axis: Domingo-Ferrer,
Mateo-Sanz, TKDE 2002.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from dbanon.anonymization.adjusting.repair import repair
from dbanon.anonymization.interfaces import Requirement, require_at_most
from dbanon.anonymization.loss.costs import BoxCosts, ColumnCosts, Shape, height_costs, pack
from dbanon.anonymization.loss.metrics import first_component, ordinal_places, standardized
from dbanon.anonymization.threads import in_threads
from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable, height_shares
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import Structure, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dbanon.kernels.layout import Floats, Int32s, Int64s, UInt64s


MOST_NODES = 64


class _Node(NamedTuple):
    """A coordinate that is ``length`` for the codes lo..hi of a column and 0 for the others."""

    variance: float
    column: EncodedColumn
    lo: int
    hi: int
    length: float


def mdav_points(table: EncodedTable) -> Floats:
    """Return a point for every row, (n, d); O(n d).

    Numbers and dates are z-scores; an ordinal column has its ranks over the number of values. A
    taxonomy has a coordinate for each node, so that two leaves are the height of their common
    ancestor over the height of the tree apart; a column without taxonomy is a tree of height 1.
    Exact for at most 64 such coordinates, otherwise the 64 with the greatest variance are kept.
    NULL is 1 apart from taxonomy values; among numbers and ranks it is the mean, 1 apart in its own
    coordinate.
    """
    numbers = [column for column in table.quasi if column.taxonomy is None]
    trees = [column for column in table.quasi if column.taxonomy is not None]
    nodes = [node for column in trees for node in _tree_nodes(column) if node.variance > 0.0]
    nodes = sorted(nodes, key=lambda node: -node.variance)[:MOST_NODES]
    nodes += [node for column in numbers for node in _null(column, 1.0) if node.variance > 0.0]
    scores = [np.nan_to_num(_score(column)) for column in numbers]
    scores = [score for score in scores if score.any()]
    points = np.zeros((table.n_rows, max(len(scores) + len(nodes), 1)))
    for i, score in enumerate(scores):
        points[:, i] = score
    for i, node in enumerate(nodes, len(scores)):
        codes = node.column.codes
        points[(codes >= node.lo) & (codes <= node.hi), i] = node.length
    return points


def _score(column: EncodedColumn) -> Floats:
    """Return the centered values of the rows, (n,), NaN for NULL."""
    if column.structure is Structure.LINE:
        return standardized(column)
    places = np.append(ordinal_places(column), np.nan)[column.codes]
    present = places[~np.isnan(places)]
    scores: Floats = places - (present.mean() if present.size else 0.0)
    return scores


def _tree_nodes(column: EncodedColumn) -> Iterator[_Node]:
    """Yield the nodes below the root, each with the difference to its parent's squared height."""
    taxonomy = column.taxonomy
    if taxonomy is None:
        return
    squares = height_shares(taxonomy) ** 2
    for node in range(1, len(squares)):
        length = ((squares[taxonomy.parent[node]] - squares[node]) / 2 * column.rule.weight) ** 0.5
        lo, hi = int(taxonomy.leaf_lo[node]), int(taxonomy.leaf_hi[node])
        yield _Node(_variance(column, lo, hi, length=length), column, lo, hi, length)
    yield from _null(column, 1.0 - float(squares[0]) / 2)


def _null(column: EncodedColumn, square: float) -> Iterator[_Node]:
    null, length = column.size, (square * column.rule.weight) ** 0.5
    yield _Node(_variance(column, null, null, length=length), column, null, null, length)


def _variance(column: EncodedColumn, lo: int, hi: int, *, length: float) -> float:
    share = float(((column.codes >= lo) & (column.codes <= hi)).mean())
    return share * (1.0 - share) * length * length


BLOCK, REGION = 250, 1 << 16  # rows: of a task of MDAV, and of a task of local search
SWEEPS = 4
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
    """Return how many nearest rows to find for each of n rows, and the slack."""
    most, slack = NEAR_OF_SMALL if n <= SMALL else NEAR_OF_LARGE
    return min(most, n - 1), slack


def _join(rows: list[Int64s], groups: list[Int32s], n: int) -> Int32s:
    """Renumber the groups of all regions without collisions."""
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
    """Return the rows of regions of whole groups, cut at random."""
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
    """Rows, their points, and the indices of the nearest rows of each."""

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
    """Return better groups by large-neighbourhood search; trials: unions rebuilt per row.

    clock: begin and end of each chunk in [0, 1] (temperature), and its share of the trials.
    """
    from dbanon.kernels.points.microaggregation import rebuild as rebuild_region

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


_Z_SUM, _PRINCIPAL = "z-sum", "principal"
OPTIMAL, FIXED = "optimal", "fixed"
_DIGITS = 12  # differences by rounding alone are equal, on every machine

SMALL = 10_000  # rows
TRIALS, TRIALS_OF_SMALL, TRIALS_OF_LARGE = 200.0, 4.0, 1.0  # for each row: best, fast
CHUNKS = 16


@dataclass(frozen=True, slots=True)
class Microaggregation:
    """Groups of k to 2k - 1 rows of least squared error around their means.

    effort "fast": MDAV in blocks of at most 250 rows, local search (relocate, swap, dissolve,
    create) and a short large-neighbourhood search. "best" extends the latter (POPMUSIC, Taillard
    and Voss 2002): random unions of 3 to 7 groups are rebuilt ``trials`` times per row, default 200
    and fewer for k above 10, or for ``time_limit`` seconds (machine-dependent). Regions have at
    most 65,536 rows.

    Rows are ``mdav_points``; distances are those of MDAV-generic. Ties go to the lower row. Groups
    are merged afterwards for l > 1, so at most 2k - 1 rows for l = 1 only.
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
    """Yield begin, end and share of the trials of each chunk; with a limit, the end is a guess."""
    if limit is None:
        yield from ((i / chunks, (i + 1) / chunks, 1 / chunks) for i in range(chunks))
        return
    start, before, now = time.monotonic(), 0.0, 0.0
    while now < 1.0:
        yield now, min(2 * now - before, 1.0), 1 / TRIALS
        before, now = now, (time.monotonic() - start) / max(limit, 1e-9)


@dataclass(frozen=True, slots=True)
class Projection:
    """Order the rows along an axis and cut the order into groups of k to 2k - 1 rows.

    ``axis``: ``z-sum``, the sum of the standardized columns; ``principal``, their first principal
    component, the greatest loading positive (ties are up to the linear algebra library); or a
    column name. ``blocks``: ``optimal``, the least squared error of the projection (Hansen,
    Mukherjee, TKDE 2003), or ``fixed``, k rows in each group and the rest in the last.

    Taxonomy values are in leaf order. NULL lies beyond the greatest value, by the width of the
    range. Weights scale squared differences. Equal rows stay in row order; the earliest of equal
    cuts is taken. Groups are merged afterwards for l > 1, so at most 2k - 1 rows for l = 1 only.
    """

    axis: str = _Z_SUM
    blocks: str = OPTIMAL

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n log n + n d^2 + n k)."""
        if self.blocks not in {OPTIMAL, FIXED}:
            msg = f"projection knows no blocks {self.blocks!r}"
            raise PolicyError(msg, hint=f"choose one of {OPTIMAL}, {FIXED}")
        scores = _scores(table, self.axis)
        return _blocks(table, scores, requirement, optimal=self.blocks == OPTIMAL)


@dataclass(frozen=True, slots=True)
class Univariate:
    """Order the rows by one column and cut with the least error (Hansen, Mukherjee, TKDE 2003).

    ``column`` names it, default the first quasi-identifier. No partition into groups of at least k
    rows has a smaller squared error in that column. Otherwise as ``projection``.
    """

    column: str = ""

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n log n + n k)."""
        column = _named(table, self.column) if self.column else table.quasi[0]
        return _blocks(table, _column_scores(column), requirement, optimal=True)


def _blocks(
    table: EncodedTable, scores: Floats, requirement: Requirement, *, optimal: bool
) -> Assignment:
    from dbanon.kernels.points.microaggregation import least_error_blocks

    n, k = table.n_rows, requirement.k
    order = np.argsort(scores, kind="stable")
    if optimal:
        blocks, n_groups = least_error_blocks(scores[order], k)
    else:
        n_groups = n // k
        blocks = np.minimum(np.arange(n) // k, n_groups - 1)
    group = np.empty(n, np.int32)
    group[order] = blocks
    return repair(table, Assignment(group, int(n_groups)), requirement)


def _scores(table: EncodedTable, axis: str) -> Floats:
    """Return the position of each row on the axis, (n,)."""
    if axis not in {_Z_SUM, _PRINCIPAL}:
        return _column_scores(_named(table, axis))
    points = np.column_stack([_column_scores(column) for column in table.quasi])
    scores = points @ first_component(points) if axis == _PRINCIPAL else points.sum(axis=1)
    return np.asarray(scores.round(_DIGITS), np.float64)


def _column_scores(column: EncodedColumn) -> Floats:
    """Return the z-scores of a column, with a number for NULL."""
    if column.structure is not Structure.LINE:
        column = replace(column, values=np.arange(column.size))
    scores = standardized(column)
    present = scores[~np.isnan(scores)]
    width = np.ptp(present) if present.size else 0.0
    # NULL and a value are at least as far apart as any two values
    return np.where(np.isnan(scores), present.max(initial=0.0) + (width or 1.0), scores)


def _named(table: EncodedTable, name: str) -> EncodedColumn:
    names: Sequence[str] = [column.name for column in table.quasi]
    if name not in names:
        msg = f"{quote_identifier(name)} is no quasi-identifier to order the rows by"
        raise PolicyError(msg, hint=f"choose one of {', '.join(map(quote_identifier, names))}")
    return table.quasi[names.index(name)]


@dataclass(frozen=True, slots=True)
class Mdav:
    """Maximum distance to average vector: groups of k around the most distant records.

    Numbers and dates are standardized and averaged. Ordinal columns have the lower median as
    average, and steps over the number of values as distance. Others have the most frequent value as
    average, and the height of the lowest common ancestor over that of the tree as distance (0 or 1
    without a taxonomy). Squared distances are weighted and added; NULL and a value are 1 apart.
    Ties go to the lower row. Groups are merged afterwards for l > 1, so at most 2k - 1 rows for l =
    1 only.

    Numbers and dates without NULL are searched on a kd-tree with the same result and no row limit.
    """

    MAX_ROWS: ClassVar[int] = 50_000

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d / k), less on a tree of few columns."""
        numbers = [column for column in table.quasi if column.structure is Structure.LINE]
        points = _points(numbers, table.n_rows)
        if len(numbers) == len(table.quasi) and points.size and not np.isnan(points).any():
            from dbanon.kernels.points.mdav import LEAF, mdav_tree

            group, n_groups = mdav_tree(points, requirement.k, LEAF)
        else:
            require_at_most(self.MAX_ROWS, table, algorithm="mdav")
            group, n_groups = _brute(table, points, requirement.k)
        return repair(table, Assignment(group, int(n_groups)), requirement)


@dataclass(frozen=True, slots=True)
class VMdav:
    """MDAV of variable size: a group of k grows while its next row is nearer to it than to others.

    The seed is the row farthest from the table's average. The row nearest to any member joins, up
    to 2k - 1 rows, if that distance is less than ``gamma`` times its distance to the nearest
    ungrouped row; 0 makes all groups k, about 1 suits clustered data, 0.2 scattered data. Fewer
    than k leftovers join the groups of the nearest means, so a group has at most 3k - 2 rows. Rows
    are ``mdav_points``. Ties go to the lower row. Groups are merged afterwards for l > 1.
    """

    gamma: float = 0.2

    def assign(self, table: EncodedTable, requirement: Requirement, *, seed: int) -> Assignment:
        """Group the rows; O(n^2 d) at worst, less on a tree of few columns."""
        from dbanon.kernels.points.mdav import LEAF, v_mdav

        group, n_groups = v_mdav(mdav_points(table), requirement.k, float(self.gamma), LEAF)
        return repair(table, Assignment(group, int(n_groups)), requirement)


def _brute(table: EncodedTable, points: Floats, k: int) -> tuple[Int32s, int]:
    """Compare all pairs of rows."""
    from dbanon.kernels.points.mdav import mdav

    others = [column for column in table.quasi if column.structure is not Structure.LINE]
    costs = BoxCosts(np.empty(0), np.empty((0, 3), np.int64))
    if others:
        costs = pack([_steps(column) for column in others])
    return mdav(points, replace(table, quasi=tuple(others)).codes, *costs, k)


def _steps(column: EncodedColumn) -> ColumnCosts:
    """Return the weighted distances of codes of a column that is no number."""
    root = column.rule.weight**0.5
    if column.structure is Structure.TREE:
        return height_costs(column).times(root)
    return ColumnCosts(column.size, ordinal_places(column), Shape.ORDER, everything=root)


def _points(columns: list[EncodedColumn], n_rows: int) -> Floats:
    """Return the standardized columns that vary, (n, varying)."""
    varying = [column for column in columns if (column.codes != column.codes[0]).any()]
    points = np.empty((n_rows, len(varying)))
    for i, column in enumerate(varying):
        points[:, i] = standardized(column)
    return points
