"""Distances of two values of a column, as arrays of codes, and of two rows.

A value distance takes a column and two arrays of its codes that broadcast, and returns distances of
the broadcast shape. NULL and NULL are 0 apart, NULL and a value 1: the maximum of every distance
here except those divided by a deviation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import numpy as np

from dbanon.anonymization.interfaces import require_at_most
from dbanon.anonymization.loss.costs import height_costs, pack
from dbanon.domain.assignment import EncodedColumn, EncodedTable, Taxonomy, height_shares
from dbanon.domain.errors import PolicyError
from dbanon.domain.table import Structure, quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats


MOST_NODES = 256  # of a taxonomy that get a coordinate


def embed(table: EncodedTable) -> Floats:
    """Return a point for each row, (n, p); squared distances are weighted.

    An ordered column is one coordinate, scaled to [0, 1]; NULL lies in its middle, 1 away in
    another. A taxonomy has a coordinate for each node, so that the squared distance of two values
    is the height of their lowest common ancestor over that of the tree (0 or 1 without levels);
    NULL is 1 from every value. Beyond 256 nodes, those with the fewest rows have none, which brings
    rare values closer.
    """
    parts = [
        (_line(column) if column.taxonomy is None else _nodes(column, column.taxonomy))
        * column.rule.weight**0.5
        for column in table.quasi
    ]
    return np.ascontiguousarray(np.column_stack(parts))


def _line(column: EncodedColumn) -> Floats:
    points = np.zeros((len(column.codes), 2))
    points[:, 0] = np.append(column.position, 0.5)[column.codes]
    points[:, 1] = column.codes == column.size
    return points if points[:, 1].any() else points[:, :1]


def _nodes(column: EncodedColumn, taxonomy: Taxonomy) -> Floats:
    rows = np.bincount(column.codes, minlength=column.size + 1)
    below = np.append(0, np.cumsum(rows[:-1]))
    n_rows = below[taxonomy.leaf_hi + 1] - below[taxonomy.leaf_lo]
    height = height_shares(taxonomy)
    rise = height[taxonomy.parent] - height
    rise[0] = 0.0
    nodes = np.flatnonzero((n_rows > 0) & (rise > 0.0))
    nodes = nodes[np.argsort(-n_rows[nodes], kind="stable")][:MOST_NODES]
    points = np.zeros((column.size + 1, len(nodes) + 1))
    for i, node in enumerate(nodes.tolist()):
        leaves = slice(taxonomy.leaf_lo[node], taxonomy.leaf_hi[node] + 1)
        points[leaves, i] = np.sqrt(rise[node] / 2)
    points[-1, -1] = np.sqrt(0.5)
    return points[column.codes] if rows[-1] else points[column.codes, :-1]


Codes: TypeAlias = "NDArray[np.int32]"
Distances: TypeAlias = "NDArray[np.float64]"
ValueDistance = Callable[[EncodedColumn, Codes, Codes], Distances]


def num(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference over the range of the whole column; columns on a line only."""
    return _apart(column.position, a, b)


def z(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference over the standard deviation of the column's rows, 0 if that is 0."""
    present = column.position[column.codes[column.codes < column.size]]
    spread = present.std() if present.size else 0.0
    scores = column.position / spread if spread > 0.0 else np.zeros(column.size)
    return _apart(scores, a, b)


def log(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the difference of logarithms over their range; PolicyError for a value without one."""
    if (column.values <= 0).any():
        msg = f"column {quote_identifier(column.name)} holds values that are no positive numbers"
        raise PolicyError(msg, hint="choose another distance, such as manhattan")
    logs = np.log(column.values.astype(np.float64))
    width = float(np.ptp(logs)) if logs.size else 0.0
    return _apart(logs / width if width > 0.0 else np.zeros(column.size), a, b)


def rank(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the steps between the values over the steps from the first value to the last."""
    return _apart(np.arange(column.size) / max(column.size - 1, 1), a, b)


def ord(column: EncodedColumn, a: Codes, b: Codes) -> Distances:  # noqa: A001 - the paper's name
    """Return the steps between the values over the number of values (DMKD 2005)."""
    return _apart(np.arange(column.size) / max(column.size, 1), a, b)


def eq(
    column: EncodedColumn,  # noqa: ARG001 - of the type; codes suffice
    a: Codes,
    b: Codes,
) -> Distances:
    """Return 0 for equal values, otherwise 1."""
    differs: Distances = (a != b).astype(np.float64)
    return differs


def tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the height of the lowest common ancestor over that of the tree (DASFAA 2007)."""
    from dbanon.kernels.boxes.costs import box_costs

    # each pair of distinct codes once
    (rows, row), (columns, place) = (np.unique(codes, return_inverse=True) for codes in (a, b))
    lo, hi = np.minimum.outer(rows, columns), np.maximum.outer(rows, columns)
    costs = box_costs(*pack([height_costs(column)]), lo.reshape(-1, 1), hi.reshape(-1, 1))
    shares: Distances = costs.reshape(lo.shape)[row.reshape(a.shape), place.reshape(b.shape)]
    return shares


def edit(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return the Levenshtein distance of two texts over the length of the longest; O(length^2)."""
    texts = column.values.astype(np.str_)
    lengths = np.char.str_len(texts)
    longest = max(int(lengths.max(initial=0)), 1)
    letters = texts.astype(f"U{longest}").view(np.uint32).reshape(len(texts), longest).T
    (rows, row), (columns, place) = (np.unique(codes, return_inverse=True) for codes in (a, b))
    apart = (rows[:, None] != columns).astype(np.float64)  # as NULL and a value are
    some = columns[columns < column.size]
    for i, code in enumerate(rows[rows < column.size].tolist()):
        text = letters[: lengths[code], code]
        edits = _edits(text, letters[:, some], lengths[some])
        apart[i, : len(some)] = edits / longest
    found: NDArray[np.float64] = apart[row.reshape(a.shape), place.reshape(b.shape)]
    return found


def _edits(
    text: NDArray[np.uint32], others: NDArray[np.uint32], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the edits from one text to each of others, (m,); others: (longest, m), 0-padded."""
    steps = np.arange(len(others) + 1)[:, None]
    edits = np.broadcast_to(steps, (len(steps), len(lengths)))
    for i, letter in enumerate(text.tolist(), 1):
        found = np.empty(edits.shape, np.int64)
        found[0] = i
        np.minimum(edits[1:] + 1, edits[:-1] + (others != letter), out=found[1:])
        # and insertions after it: one edit for each step down
        edits = np.minimum.accumulate(found - steps, axis=0) + steps
    return edits[lengths, np.arange(len(lengths))]


def num_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``num`` of a column on a line, ``rank`` of one in order and ``tax`` of any other."""
    chosen = {Structure.LINE: num, Structure.ORDER: rank, Structure.TREE: tax}
    return chosen[column.structure](column, a, b)


def z_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``z`` of a column on a line, ``ord`` of one in order and ``tax`` of any other."""
    chosen = {Structure.LINE: z, Structure.ORDER: ord, Structure.TREE: tax}
    return chosen[column.structure](column, a, b)


def log_or_tax(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``log`` of a numeric column, otherwise ``num_or_tax``."""
    chosen = log if column.kind.is_number else num_or_tax
    return chosen(column, a, b)


def num_or_edit(column: EncodedColumn, a: Codes, b: Codes) -> Distances:
    """Return ``edit`` of texts without a taxonomy of levels, otherwise ``num_or_tax``."""
    is_flat = column.taxonomy is not None and column.taxonomy.height <= 1
    chosen = edit if is_flat else num_or_tax
    return chosen(column, a, b)


def _apart(place: Distances, a: Codes, b: Codes) -> Distances:
    """Return the absolute differences of the codes' places; NULL has none."""
    places = np.append(place, np.nan)
    apart: Distances = np.abs(places[a] - places[b])
    missing = np.isnan(apart)
    apart[missing] = (a != b)[missing]
    return apart


MAX_ROWS = 20_000  # a matrix of all pairs takes 3.2 GB then
_NO_LENGTH = 1e-24  # squared; anything shorter is a rounding error
_ORDERED = "minkowski:"  # followed by the order
_GREATEST_ORDER = 10.0  # of greater ones the powers of small differences are 0
_CELLS = 1 << 22  # of all pairs that are measured at a time


class Distance(Protocol):
    """A distance of rows."""

    @property
    def is_metric(self) -> bool:
        """True if the triangle inequality holds, which the bounds of gathering need."""
        ...

    def between(self, table: EncodedTable, rows: slice) -> Floats:
        """Return the distances of some rows from all rows, (len(rows), n)."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Minkowski:
    """The root of the weighted sum of powers of the value distances.

    order: of the power and the root, at least 1; is_rooted: False omits the root, which keeps the
    order but breaks the triangle inequality.
    """

    step: ValueDistance
    order: float = 1.0
    is_rooted: bool = True

    @property
    def is_metric(self) -> bool:
        """True if the triangle inequality holds."""
        return self.is_rooted

    def between(self, table: EncodedTable, rows: slice) -> Floats:
        """Return the distances of some rows from all rows, (len(rows), n)."""
        steps = _steps(table, rows, step=self.step)
        total = power_sum(steps, weights=_weights(table).tolist(), order=self.order)
        return total ** (1.0 / self.order) if self.is_rooted and self.order != 1.0 else total


class Gower:
    """The weighted mean of the value distances over the columns without NULL.

    A pair without such a column uses the mean over all columns. No metric.
    """

    is_metric: ClassVar[bool] = False

    def between(self, table: EncodedTable, rows: slice) -> Floats:
        """Return the distances of some rows from all rows, (len(rows), n)."""
        steps, weights = np.array([*_steps(table, rows, step=num_or_tax)]), _weights(table)
        null = np.array([column.codes == column.size for column in table.quasi])
        known = weights[:, None, None] * ~(null[:, rows, None] | null[:, None, :])
        known[:, known.sum(axis=0) == 0.0] = weights[:, None]
        total = known.sum(axis=0)
        mean: Floats = (known * steps).sum(axis=0) / np.where(total > 0, total, 1.0)
        return mean


@dataclasses.dataclass(frozen=True, slots=True)
class Angle:
    """1 - cosine of the angle between two rows, as points of ``embed``; no metric.

    is_centered: subtracts the mean of coordinates (Pearson correlation). Two rows without direction
    are 0 apart, one and another 1.
    """

    is_centered: bool
    is_metric: ClassVar[bool] = False

    def between(self, table: EncodedTable, rows: slice) -> Floats:
        """Return the distances of some rows from all rows, (len(rows), n)."""
        points = embed(table)
        if self.is_centered:
            points = points - points.mean(axis=1, keepdims=True)
        products, squares = np.zeros((len(points[rows]), len(points))), np.zeros(len(points))
        for column in points.T:  # one after the other, in which order no sum depends on the block
            products += column[rows, None] * column
            squares += column * column
        squares[squares < _NO_LENGTH] = 0.0
        lengths = np.sqrt(squares[rows, None] * squares)
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0.0)
        cosines[(squares[rows, None] == 0.0) & (squares == 0.0)] = 1.0
        return 1.0 - np.clip(cosines, -1.0, 1.0)


DISTANCES: Mapping[str, Distance] = {
    "manhattan": Minkowski(num_or_tax),
    "mixed": Minkowski(num_or_tax),  # the same, by the name of Byun et al., DASFAA 2007
    "euclidean": Minkowski(num_or_tax, order=2.0),
    "squared-euclidean": Minkowski(z_or_tax, order=2.0, is_rooted=False),  # as MDAV measures
    "minkowski": Minkowski(num_or_tax, order=3.0),
    "hamming": Minkowski(eq),
    "gower": Gower(),
    "log": Minkowski(log_or_tax),
    "edit": Minkowski(num_or_edit),
    "cosine": Angle(is_centered=False),
    "pearson": Angle(is_centered=True),
}
"""Values of the parameter ``distance`` of an algorithm, in addition to minkowski:ORDER."""


def require_metric(name: str, *, algorithm: str) -> None:
    """Raise PolicyError unless a distance of that name keeps the triangle inequality."""
    if not _named(name).is_metric:
        msg = f"distance {name!r} is no metric, and what {algorithm} promises takes one"
        metrics = [other for other, distance in DISTANCES.items() if distance.is_metric]
        raise PolicyError(msg, hint=f"choose one of {', '.join(metrics)}")


def _named(name: str) -> Distance:
    if name.startswith(_ORDERED):
        return Minkowski(num_or_tax, order=_order(name.removeprefix(_ORDERED)))
    if name not in DISTANCES:
        msg = f"there is no distance {name!r}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(DISTANCES)}")
    return DISTANCES[name]


def _order(text: str) -> float:
    try:
        order = float(text)
    except ValueError:
        order = math.nan
    if not 1.0 <= order <= _GREATEST_ORDER:
        msg = f"the order of minkowski is a number from 1 to {_GREATEST_ORDER:g}, not {text!r}"
        raise PolicyError(msg, hint="give the order after a colon: minkowski:4")
    return order


def pairwise(table: EncodedTable, name: str = "manhattan") -> Floats:
    """Return the weighted distances of all pairs of rows, (n, n); O(n^2 d) time, O(n^2) memory.

    name: of ``DISTANCES``, or minkowski:ORDER. Raises Unsatisfiable above 20,000 rows, PolicyError
    for an unknown name or for values without such a distance.
    """
    distance = _named(name)
    require_at_most(MAX_ROWS, table, algorithm="a matrix of distances")
    apart = np.empty((table.n_rows, table.n_rows))
    height = max(_CELLS // (table.n_rows * len(table.quasi) + 1), 1)
    for start in range(0, table.n_rows, height):
        rows = slice(start, start + height)
        apart[rows] = distance.between(table, rows)
    return apart


def power_sum(steps: Iterable[Floats], *, weights: Iterable[float], order: float) -> Floats:
    """Return the weighted sum of powers of the columns' distances, without a root."""
    total = np.zeros(1)
    for step, weight in zip(steps, weights, strict=True):
        power = step if order == 1.0 else step**order
        total = total + (power if weight == 1.0 else power * weight)
    return total


def _steps(table: EncodedTable, rows: slice, *, step: ValueDistance) -> Iterator[Floats]:
    """Yield the value distances of each column, (len(rows), n)."""
    for column in table.quasi:
        yield step(column, column.codes[rows, None], column.codes[None, :])


def _weights(table: EncodedTable) -> Floats:
    return np.array([column.rule.weight for column in table.quasi])
