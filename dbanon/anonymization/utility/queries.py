"""Random COUNT queries: a range of one column and some values of another.

Answers from the release count the rows of a class times the shares of its cells in the query; the
true count is that of the source. The imprecision of a query is the number of rows of all
overlapping classes minus the true count (Pervaiz et al., TKDE 2014, after LeFevre et al., TODS
2008), here relative to the true count, like the error.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.utility.readings import Reading, published_pairs
from dbanon.domain.report import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

SELECTIVITIES = (0.005, 0.01, 0.05)
QUERIES = 1000
_NEAR = 0.1
_MOST_VALUES = 3
MOST_PARTS = 100
_SLICES = 10
_MOST_PAIRS = 24
_TRIES = 200
_AT_ONCE = 4_000_000


class Query(NamedTuple):
    """Codes from first to last of a column, requested parts of another, and their rows."""

    first: int
    last: int
    wanted: tuple[int, ...]
    rows: int


class Deviations(NamedTuple):
    """Relative deviations of answers, (n,): absolute error; excess rows of overlapping classes."""

    error: Floats
    imprecision: Floats


class QuerySet(NamedTuple):
    """Queries of a range of one column and values of another; parts: see ``parts_of``."""

    ranged: str
    column: str
    parts: Counts
    queries: tuple[Query, ...]


def query_errors(
    readings: Sequence[Reading], *, generator: np.random.Generator, scaled: bool = False
) -> tuple[QueryError, ...]:
    """Return the errors of random queries, by their share of the rows; O(rows log rows) a pair.

    scaled: a sample is published, and counts are scaled to all rows.
    """
    n_rows = len(readings[0].codes) if readings else 0
    published = float(readings[0].rows.sum()) if readings else 0.0
    scale = n_rows / published if scaled else 1.0
    results = []
    for share in SELECTIVITIES:
        asked = draw(readings, share=share, n=QUERIES, generator=generator)
        found = deviations(readings, asked, scale=scale)
        if len(found.error):
            of_each = np.percentile(found, [50, 95], axis=1).T.round(6).tolist()
            (median, upper), (imprecision, imprecision_upper) = of_each
            results.append(
                QueryError(
                    selectivity=share,
                    queries=len(found.error),
                    median=median,
                    upper=upper,
                    imprecision=imprecision,
                    imprecision_upper=imprecision_upper,
                )
            )
    return tuple(results)


def draw(
    readings: Sequence[Reading], *, share: float, n: int, generator: np.random.Generator
) -> list[QuerySet]:
    """Return n random queries that about this share of the source's rows meets.

    One to three random values (or parts) of a random column, and a range of another from a random
    value to the first that includes enough rows. Queries more than a tenth off are redrawn;
    unproductive columns are replaced by others.
    """
    pairs = _pairs(readings)
    generator.shuffle(pairs)
    pairs = pairs[:_MOST_PAIRS]
    asked, left = [], n
    while left > 0 and pairs:
        fruitful = []
        for place, (ranged, other) in enumerate(pairs):
            wanted = -(-left // (len(pairs) - place))
            counter = _Counter(ranged, other)
            queries = tuple(_drawn(counter, share=share, n=wanted, generator=generator))
            left -= len(queries)
            if queries:
                asked.append(QuerySet(ranged.name, other.name, counter.parts, queries))
                fruitful.append((ranged, other))
        pairs = fruitful
    return asked


def deviations(
    readings: Sequence[Reading], asked: Sequence[QuerySet], *, scale: float = 1.0
) -> Deviations:
    """Return the deviation of the answer to each query; answers are multiplied by ``scale``."""
    by_name = {reading.name: reading for reading in readings}
    found = [np.zeros((2, 0))]
    for each in asked:
        counted = scale * answers(by_name[each.ranged], by_name[each.column], each)
        truth = np.array([query.rows for query in each.queries])
        found.append((counted - truth) / truth)
    estimated, possible = np.concatenate(found, axis=1)
    return Deviations(np.abs(estimated), possible)


def answers(ranged: Reading, other: Reading, asked: QuerySet) -> Floats:
    """Return the estimated and the greatest possible rows of each query, (2, n)."""
    joint = published_pairs(ranged, other)
    assert joint is not None  # noqa: S101 - of two sensitive columns nothing is asked
    of_parts = _shares_of_parts(other, asked)
    step = max(1, _AT_ONCE // max(ranged.n_labels, other.n_labels))
    found = []
    for at in range(0, len(asked.queries), step):
        some = asked.queries[at : at + step]
        first = np.array([query.first for query in some])
        last = np.array([query.last for query in some])
        # a class of several values that are asked for is counted once
        wanted = [sum(of_parts[part] for part in query.wanted) for query in some]
        shares, overlaps = np.minimum(np.array(wanted), 1.0).transpose(1, 0, 2)
        estimated = (joint.T @ ranged.runs(first, last).T).T * shares
        possible = (joint.T @ ranged.overlapping(first, last).T.astype(np.float64)).T * overlaps
        found.append(np.array([estimated.sum(axis=1), possible.sum(axis=1)]))
    return np.concatenate(found, axis=1)


def _shares_of_parts(other: Reading, asked: QuerySet) -> dict[int, Floats]:
    """Return the share of each label in each requested part, and if they overlap, (2, labels)."""
    found = {}
    for part in {part for query in asked.queries for part in query.wanted}:
        codes = np.flatnonzero(asked.parts == part)
        if other.line is None:
            shares = other.covered(asked.parts == part)
            overlaps = shares > 0.0
        else:
            ends = codes[:1], codes[-1:]
            shares, overlaps = other.runs(*ends)[0], other.overlapping(*ends)[0]
        found[part] = np.array([shares, overlaps])
    return found


def _pairs(readings: Sequence[Reading]) -> list[tuple[Reading, Reading]]:
    """Return the pairs of a column for ranges and a column for values."""
    ranged = [each for each in readings if each.ordered] or list(readings)
    others = [each for each in readings if not each.ordered] or list(readings)
    return [
        (a, b)
        for a in ranged
        for b in others
        if a is not b and not (a.classes is not None and b.classes is not None)
    ]


def parts_of(reading: Reading) -> Counts:
    """Return the query part of each code, -1 for NULL: values, or nodes or tenths if many."""
    codes = np.arange(reading.n_codes)
    if reading.line is not None:
        rows = np.cumsum(reading.of_codes)
        parts = np.minimum(_SLICES * rows // max(rows[-1], 1.0), _SLICES - 1).astype(np.int64)
    elif reading.tree is not None and reading.leaf is not None:
        tree = reading.tree
        levels = (_known_nodes(reading, tree.at_depth(at)) for at in range(tree.height, 0, -1))
        few = (nodes for nodes in levels if len(np.unique(nodes)) <= MOST_PARTS)
        nodes = next(few, _known_nodes(reading, tree.leaves.astype(np.int64)))
        parts = np.append(nodes, -1)[reading.leaf]
    else:
        parts = codes
    return np.where(codes == reading.null, -1, parts)


def _known_nodes(reading: Reading, nodes: Counts) -> Counts:
    """Return nodes of leaves, or their cells if these are above them."""
    assert reading.tree is not None  # noqa: S101 - the caller has looked
    if reading.cells is None:
        return nodes
    depth = reading.tree.depth
    return np.where(depth[nodes] > depth[reading.cells], reading.cells, nodes)


class _Counter:
    """Counts the rows of the source with some parts of a column and a range of another."""

    def __init__(self, ranged: Reading, other: Reading) -> None:
        self.parts = parts_of(other)
        values = np.unique(self.parts[self.parts >= 0])
        known = ranged.codes[ranged.codes != ranged.null]
        self.last = int(known.max()) if len(known) else 0
        self.base = ranged.n_codes
        self.n_rows = len(ranged.codes)
        # half the size if they fit: sorting them is most of the work
        fits = (int(values.max(initial=0)) + 1) * self.base <= np.iinfo(np.int32).max
        number = np.int32 if fits else np.int64
        self.all_parts = values.astype(number)
        of_rows: NDArray[Any] = self.parts.astype(number)[other.codes]
        # a list, in which a few keys are found ten times as fast as in an array
        self.keys: list[int] = np.sort(np.add(of_rows * self.base, ranged.codes)).tolist()

    def __call__(self, wanted: Sequence[int], first: int, last: int) -> int:
        """Return the number of rows with a requested part and a code from first to last."""
        return self._up_to(wanted, last) - self._up_to(wanted, first - 1)

    def _up_to(self, wanted: Sequence[int], last: int) -> int:
        """Return the number of rows up to a code, also of parts before the requested ones."""
        return sum(bisect_right(self.keys, part * self.base + last) for part in wanted)

    def first_with(self, aim: float, wanted: Sequence[int], first: int) -> int:
        """Return the least last code of a range with at least ``aim`` rows."""
        low, high, before = first, self.last, self._up_to(wanted, first - 1)
        while low < high:
            middle = (low + high) // 2
            if self._up_to(wanted, middle) - before >= aim:
                high = middle
            else:
                low = middle + 1
        return low


def _drawn(
    counter: _Counter, *, share: float, n: int, generator: np.random.Generator
) -> Iterator[Query]:
    """Yield up to n queries, until too many tries fail."""
    aim, tries = share * counter.n_rows, 0
    if not len(counter.all_parts) or counter.last < 1:
        return
    while n and tries < _TRIES:
        tries += 1
        many = min(len(counter.all_parts), int(generator.integers(1, _MOST_VALUES + 1)))
        wanted = generator.choice(counter.all_parts, many, replace=False).tolist()
        first = int(generator.integers(0, counter.last + 1))
        if counter(wanted, first, counter.last) < aim:
            continue
        last = counter.first_with(aim, wanted, first)
        count = counter(wanted, first, last)
        if count <= (1.0 + _NEAR) * aim:
            yield Query(first, last, tuple(wanted), count)
            n, tries = n - 1, 0
