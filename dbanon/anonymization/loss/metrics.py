"""Loss of a publication, measured on the published classes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.loss.costs import (
    BoxCosts,
    ColumnCosts,
    box_losses,
    column_costs,
    end_costs,
    height_costs,
    leaf_excess,
    pack,
)
from dbanon.domain.assignment import (
    Assignment,
    EncodedColumn,
    EncodedTable,
    GroupValues,
    LossReport,
    ValueColumn,
    height_shares,
)
from dbanon.domain.policy import OF_CELLS, POINTS
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.layout import Floats, Int32s, Int64s


_EXACT = 2.0**53
_DIGITS = 12  # differences by rounding alone are equal, on every machine


def first_component(points: Floats) -> Floats:
    """Return the loadings of the first principal component, (d,), the greatest being positive."""
    centered = points - points.mean(axis=0)
    loadings = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    greatest = np.abs(loadings).round(_DIGITS).argmax()
    return np.asarray(loadings * np.sign(loadings[greatest]), np.float64)


def ordinal_places(column: EncodedColumn) -> Floats:
    """Return weighted positions, (size,), in multiples of 2**-40 so that ties stay exact."""
    step = np.rint(column.rule.weight**0.5 / max(column.size, 1) * 2.0**40) / 2.0**40
    places: Floats = np.arange(column.size) * step
    return places


def standardized(column: EncodedColumn) -> Floats:
    """Return the z-scores of the rows' values times the root of the weight, NaN for NULL."""
    numbers = np.append(_scaled_numbers(column.values), np.nan)[column.codes]
    present = numbers[~np.isnan(numbers)]
    spread = present.std() if present.size else 0.0
    if spread == 0.0:
        return np.where(np.isnan(numbers), np.nan, 0.0)
    scores: Floats = (numbers - present.mean()) / spread * column.rule.weight**0.5
    return scores


def _scaled_numbers(values: NDArray[Any]) -> Floats:
    """Scale sorted values by a power of two and shift large integers, without rounding errors."""
    if values.dtype.kind != "f" and np.abs(values.astype(np.float64)).max(initial=0.0) > _EXACT:
        # unsigned differences of int64 do not overflow
        return (values.view(np.uint64) - values[:1].view(np.uint64)).astype(np.float64)
    numbers = values.astype(np.float64)
    _, exponent = np.frexp(np.abs(numbers).max(initial=0.0))
    return np.asarray(np.ldexp(numbers, -exponent), np.float64)


_ROUNDING = 4.0 * np.finfo(np.float64).eps

MOST_PAIRS = 4_000_000
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Publication:
    """A table, its groups, and the published classes: distinct tuples, of one or more groups.

    classes: (n,) the class of each row, -1 if suppressed; size: (n_classes,) its rows.
    """

    table: EncodedTable
    assignment: Assignment
    values: GroupValues
    k: int
    classes: Int32s
    size: Int64s

    @property
    def n_suppressed(self) -> int:
        """Number of suppressed rows."""
        return self.assignment.n_suppressed

    @cached_property
    def boxes(self) -> tuple[Int32s, Int32s]:
        """Least and greatest code of each class, (n_classes, d) each."""
        from dbanon.kernels.boxes.costs import group_boxes

        lo, hi, _ = group_boxes(self.table.codes, self.classes, len(self.size))
        return lo, hi

    @cached_property
    def radii(self) -> Floats | None:
        """Radius of each class, (n_classes,), None if classes have too many pairs of rows."""
        return _class_radii(self.table, self.classes, self.size)


Metric = Callable[[Publication], float | None]


def publication(
    table: EncodedTable, assignment: Assignment, values: GroupValues, *, k: int
) -> Publication:
    """Find the classes of the published tuples; O(n + groups log groups)."""
    class_of_group = np.zeros(assignment.n_groups, np.int64)
    for column in values.columns:
        keys = class_of_group * len(column.labels) + column.index
        class_of_group = np.unique(keys, return_inverse=True)[1]
    of_row = np.append(class_of_group, -1).astype(np.int32)[assignment.group]
    size = np.bincount(of_row[of_row >= 0])
    return Publication(table, assignment, values, k, of_row, size)


def prefixes(published: Publication) -> tuple[Int64s, ...]:
    """Return for the first 1, 2 .. columns the set of classes that agree in them, (n_classes,)."""
    sets: list[Int64s] = []
    joint = np.zeros(published.assignment.n_groups, np.int64)
    shown = np.flatnonzero(published.classes >= 0)
    groups, first = np.unique(published.assignment.group[shown], return_index=True)
    of_group = published.classes[shown[first]]
    for column in published.values.columns:
        keys = joint * len(column.labels) + column.index
        joint = np.unique(keys, return_inverse=True)[1]
        of_class = np.zeros(len(published.size), np.int64)
        of_class[of_group] = joint[groups]
        sets.append(np.unique(of_class, return_inverse=True)[1])
    return tuple(sets)


def report(published: Publication, metrics: Mapping[str, Metric]) -> LossReport:
    """Measure a publication; a metric that does not apply to its columns is omitted."""
    measured = {name: metric(published) for name, metric in metrics.items()}
    columns = _column_losses(published)
    weights = {column.name: column.rule.weight for column in published.table.quasi}
    weighted = sum(weights[name] * loss for name, loss in columns.items())
    return LossReport(
        n_rows=published.table.n_rows,
        n_suppressed=published.n_suppressed,
        n_classes=len(published.size),
        smallest_class=int(published.size.min()),
        ncp=sum(columns.values()) / len(columns),
        columns=columns,
        metrics={name: value for name, value in measured.items() if value is not None},
        weighted_ncp=weighted / sum(weights.values()) if len({*weights.values()}) > 1 else None,
    )


def _column_losses(published: Publication) -> dict[str, float]:
    """Return the normalized certainty penalty by column (Xu et al., KDD 2006), mean over rows."""
    columns = published.values.columns
    losses = _row_means(published, [column.loss[column.index] for column in columns])
    return {column.name: loss for column, loss in zip(columns, losses, strict=True)}


def _row_means(published: Publication, columns: list[Floats]) -> list[float]:
    """Return the row means of group values (n_groups,); a suppressed row has 1."""
    group = published.assignment.group
    rows = np.bincount(group[group >= 0], minlength=published.assignment.n_groups)
    return [
        float((of_group * rows).sum() + published.n_suppressed) / published.table.n_rows
        for of_group in columns
    ]


def information_loss(published: Publication) -> float:
    """Return the total loss of Byun et al. (DASFAA 2007); a suppressed row loses every column.

    The sum over cells of the range over the table's, or the common ancestor's height over the
    tree's.
    """
    return _total(published, [height_costs(column) for column in published.table.quasi])


def interval_loss(published: Publication, *, heights: bool) -> float:
    """Return the total loss of a table of persons, two of whose columns may be ends of intervals.

    heights: of ancestors, instead of the leaves below them. The loss is greater by a constant.
    """
    of_column = height_costs if heights else column_costs
    costs = [end_costs(column) or of_column(column) for column in published.table.quasi]
    weights = [column.rule.weight for column in published.table.quasi]
    return _total(published, [c.times(w) for c, w in zip(costs, weights, strict=True)])


def iloss(published: Publication) -> float:
    """Return the weighted ILoss of Xiao and Tao (SIGMOD 2006); a suppressed row loses everything.

    The sum over cells of the represented values minus one, over the leaves or distinct values.
    """
    return _total(published, [leaf_excess(column) for column in published.table.quasi])


def _total(published: Publication, columns: list[ColumnCosts]) -> float:
    """Return the sum over rows of the costs of their class, everything for a suppressed row."""
    costs = box_losses(columns, *published.boxes)
    everything = sum(column.everything for column in columns)
    return float((costs.sum(axis=1) * published.size).sum() + published.n_suppressed * everything)


def suppressed_cells(published: Publication) -> float:
    """Return the number of cells in columns that vary within the class, and of suppressed rows.

    Aggarwal et al. (ICDT 2005); Meyerson, Williams (PODS 2004).
    """
    lo, hi = published.boxes
    total = ((lo != hi).sum(axis=1) * published.size).sum()
    return float(total + published.n_suppressed * len(published.table.quasi))


def minimal_distortion(published: Publication) -> float:
    """Return the number of generalized or suppressed cells (Samarati, TKDE 2001)."""
    lo, hi = published.boxes
    group = published.assignment.group
    shown = group >= 0
    rows = np.bincount(group[shown], minlength=published.assignment.n_groups)
    class_of = np.zeros(len(rows), np.int32)
    class_of[group[shown]] = published.classes[shown]
    total = published.n_suppressed * len(published.table.quasi)
    for column, differs in zip(published.values.columns, (lo != hi).T, strict=True):
        distorted = differs[class_of]
        if column.recoding in OF_CELLS:
            distorted |= (column.loss > 0.0)[column.index]
        total += int(rows[distorted].sum())
    return float(total)


def precision(published: Publication) -> float:
    """Return 1 - mean height of a cell over that of its tree (Prec; Sweeney, IJUFKS 2002).

    Without a tree or node, the certainty penalty counts; a suppressed cell counts 1.
    """
    columns = [
        _height_shares(column, shown)[shown.index]
        for column, shown in zip(published.table.quasi, published.values.columns, strict=True)
    ]
    return 1.0 - sum(_row_means(published, columns)) / len(columns)


def _height_shares(column: EncodedColumn, shown: ValueColumn) -> Floats:
    """Return the relative height of each label, (len(labels),)."""
    if column.taxonomy is None or not shown.nodes:
        return shown.loss
    height = dict(zip(column.taxonomy.labels, height_shares(column.taxonomy), strict=True))
    pairs = zip(shown.labels, shown.loss, strict=True)
    return np.array([loss if label is None else height[label] for label, loss in pairs])


def discernibility(published: Publication) -> float:
    """Return the sum of squared class sizes, a suppressed row counting n (Bayardo, Agrawal)."""
    return float((published.size**2).sum() + published.n_suppressed * published.table.n_rows)


def average_class_size(published: Publication) -> float:
    """Return the mean number of rows of a class."""
    return float(published.size.mean())


def normalized_average_class_size(published: Publication) -> float:
    """Return the mean number of rows of a class over k (LeFevre et al.); 1 is best."""
    return average_class_size(published) / published.k


def suppressed(published: Publication) -> float:
    """Return the share of suppressed rows."""
    return published.n_suppressed / published.table.n_rows


def sse_ratio(published: Publication) -> float | None:
    """Return 100 SSE / SST of the standardized numbers and dates; None if there are none.

    Values are replaced by the mean of their class, the table's for a suppressed row; NULL is
    ignored.
    """
    error, total = 0.0, 0.0
    for column in published.table.quasi:
        if column.structure is not Structure.LINE:
            continue
        scores = standardized(column)
        present = ~np.isnan(scores)
        scores, classes = scores[present], published.classes[present]
        shown = classes >= 0
        count = np.bincount(classes[shown], minlength=len(published.size))
        sums = np.bincount(classes[shown], weights=scores[shown], minlength=len(published.size))
        means = np.append(sums / np.maximum(count, 1), 0.0)
        error += float(((scores - means[classes]) ** 2).sum())
        total += float((scores**2).sum())
    return 100.0 * error / total if total > 0.0 else None


def max_radius(published: Publication) -> float | None:
    """Return the greatest radius of a class, which r-gather minimizes (Aggarwal et al., TALG 2010).

    Suppressed rows do not count. None if classes have too many pairs of rows (``radii``).
    """
    return None if published.radii is None else float(published.radii.max(initial=0.0))


def size_times_radius(published: Publication) -> float | None:
    """Return the sum over classes of rows times radius, which r-cellular clustering minimizes."""
    radii = published.radii
    return None if radii is None else float((radii * published.size).sum())


def classification(published: Publication) -> float | None:
    """Return the share of rows whose label differs from the class majority (Iyengar); O(n log n).

    NULL is a label; a suppressed row counts as different. None without a class label.
    """
    if published.table.label is None:
        return None
    classes, _, count = _labels_of_classes(published, published.table.label)
    most = np.zeros(len(published.size), np.int64)
    np.maximum.at(most, classes, count)
    return 1.0 - float(most.sum()) / published.table.n_rows


def gain_per_privacy_loss(published: Publication) -> float | None:
    """Return the information gain over the privacy loss + 1 (IGPL; Fung et al., CSUR 2010).

    For specializing one class of all published rows to the published ones: the gain is the decrease
    of the entropy of the class label in bits, the privacy loss that of the smallest class in rows.
    NULL is a label. None without a class label. O(n log n).
    """
    if published.table.label is None:
        return None
    _, labels, count = _labels_of_classes(published, published.table.label)
    of_labels = np.bincount(labels, weights=count)
    gain = _entropy(of_labels) + _entropy(published.size) - _entropy(count)
    return max(gain, 0.0) / float(published.size.sum() - published.size.min() + 1)


def _labels_of_classes(published: Publication, label: Int32s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the pairs of a class and a label that occur, and the number of rows of each."""
    shown = published.classes >= 0
    n_labels = int(label.max()) + 1
    pairs = published.classes[shown] * np.int64(n_labels) + label[shown]
    if pairs.max(initial=0) < len(pairs):
        counts = np.bincount(pairs)
        found = np.flatnonzero(counts)
        return found // n_labels, found % n_labels, counts[found]
    found, count = np.unique(pairs, return_counts=True)
    return found // n_labels, found % n_labels, count


def _entropy(counts: Floats | Int64s) -> float:
    """Return the entropy of these counts in bits."""
    share = counts[counts > 0] / counts.sum()
    return -float((share * np.log2(share)).sum())


def of_statistics(figure: Callable[[StatisticalLoss], float | None]) -> Metric:
    """Return the metric that is a figure of the statistics lost."""

    def metric(published: Publication) -> float | None:
        """Return it for the columns that publish one number per class, None if there are none."""
        compared = _numbers(published)
        return compared and figure(statistical_loss(*compared))

    return metric


def il1s(published: Publication) -> float | None:
    """Return IL1s: cells differ by a share of sqrt(2) sample deviations of their column."""
    compared = _numbers(published)
    return None if compared is None else scaled_difference(*compared)


def _numbers(published: Publication) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the numbers of a table and their published replacements, (m, p) each."""
    columns = [
        (column, shown)
        for column, shown in zip(published.table.quasi, published.values.columns, strict=True)
        if shown.recoding in POINTS and column.kind.is_number and column.structure is Structure.LINE
    ]
    rows = np.flatnonzero(published.assignment.group >= 0)
    before, after = np.empty((2, len(rows), len(columns)))
    for i, (column, shown) in enumerate(columns):
        numbers = [np.nan if label is None else float(label) for label in shown.labels]
        before[:, i] = np.append(column.values.astype(np.float64), np.nan)[column.codes[rows]]
        after[:, i] = np.array(numbers)[shown.index[published.assignment.group[rows]]]
    known = ~(np.isnan(before) | np.isnan(after)).any(axis=1)
    if not columns or np.count_nonzero(known) < 2:  # noqa: PLR2004 - one has no variance
        return None
    return before[known], after[known]


def _class_radii(table: EncodedTable, classes: Int32s, size: Int64s) -> Floats | None:
    """Return the least radius of each class around its rows, (n_classes,); O(sum of squared sizes).

    Twice that of Aggarwal et al. (TALG 2010) at most, whose centers are any rows of the table.
    """
    if int((size**2).sum()) > MOST_PAIRS:
        return None
    costs = pack([height_costs(column).times(column.rule.weight) for column in table.quasi])
    codes = table.codes
    rows = np.argsort(classes, kind="stable")[len(classes) - int(size.sum()) :]
    begins = np.cumsum(size) - size
    radii = np.zeros(len(size))
    for n_rows in np.unique(size).tolist():
        alike = np.flatnonzero(size == n_rows)
        for some in np.array_split(alike, len(alike) * n_rows // _ROWS_AT_ONCE + 1):
            members = rows[begins[some, None] + np.arange(n_rows)]
            radii[some] = _least_radii(costs, codes[members])
    return radii


def _least_radii(costs: BoxCosts, codes: Int32s) -> Floats:
    """Return the radii of classes of one size; codes: (classes, rows, columns)."""
    from dbanon.kernels.boxes.costs import box_costs

    n_classes, n_rows, n_columns = codes.shape
    farthest = np.zeros((n_classes, n_rows))
    for center in range(n_rows - 1):
        of_center, others = codes[:, center : center + 1], codes[:, center + 1 :]
        lo, hi = np.minimum(others, of_center), np.maximum(others, of_center)
        losses = box_costs(*costs, lo.reshape(-1, n_columns), hi.reshape(-1, n_columns))
        apart = losses.sum(axis=1).reshape(n_classes, -1)
        farthest[:, center] = np.maximum(farthest[:, center], apart.max(axis=1))
        farthest[:, center + 1 :] = np.maximum(farthest[:, center + 1 :], apart)
    least: Floats = farthest.min(axis=1)
    return least


class StatisticalLoss(NamedTuple):
    """Means of relative differences (Mateo-Sanz et al., 2005), None if every denominator is 0.

    il1: of cells; il2: of means; il3: of variances; il4: of covariances; il5: of correlations.
    """

    il1: float | None
    il2: float | None
    il3: float | None
    il4: float | None
    il5: float | None

    @property
    def overall(self) -> float | None:
        """100 times the mean of the five; None if one of them is."""
        known = [measure for measure in self if measure is not None]
        return 20.0 * sum(known) if len(known) == len(self) else None


def statistical_loss(original: NDArray[np.float64], masked: NDArray[np.float64]) -> StatisticalLoss:
    """Compare two matrices, (n, p) without NaN, n >= 2; O(n p^2).

    Terms with a denominator of 0 are ignored, as with a constant column; a mean beyond float64 is
    None.
    """
    of_cells = _relative(original, masked)
    original, masked = _scaled(original, masked)
    before, after = _covariances(original), _covariances(masked)
    pairs = np.triu_indices(len(before), 1)
    return StatisticalLoss(
        of_cells,
        _relative(_means(original), _means(masked)),
        _relative(before.diagonal(), after.diagonal()),
        _relative(before[pairs], after[pairs]),
        _relative(_correlations(before)[pairs], _correlations(after)[pairs]),
    )


def scaled_difference(original: NDArray[np.float64], masked: NDArray[np.float64]) -> float | None:
    """Return IL1s: cells differ by a share of sqrt(2) sample deviations of their column."""
    original, masked = _scaled(original, masked)
    spread = (2.0 * _covariances(original).diagonal()) ** 0.5
    varies = spread > 0.0
    if not varies.any():
        return None
    return float((np.abs(original - masked)[:, varies] / spread[varies]).mean())


def _scaled(
    original: NDArray[np.float64], masked: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale each column by a power of two below 1, so that sums do not overflow."""
    _, exponent = np.frexp(np.maximum(np.abs(original).max(axis=0), np.abs(masked).max(axis=0)))
    return np.ldexp(original, -exponent), np.ldexp(masked, -exponent)


def _means(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means, 0 if they are within the rounding error."""
    found = numbers.mean(axis=0)
    return np.where(np.abs(found) <= _rounded(numbers), 0.0, found)


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rounding error of the mean of each column."""
    greatest: NDArray[np.float64] = np.abs(numbers).max(axis=0)
    return greatest * _ROUNDING


def _covariances(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances, 0 if they are within the rounding error."""
    found: NDArray[np.float64] = np.atleast_2d(np.cov(numbers, rowvar=False))
    noise = np.outer(_rounded(numbers), np.sqrt(found.diagonal()))
    return np.where(np.abs(found) <= noise + noise.T, 0.0, found)


def _correlations(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return correlations, 0 with a constant column."""
    spread = np.sqrt(covariances.diagonal())
    spreads = np.outer(spread, spread)
    correlations: NDArray[np.float64] = np.divide(
        covariances, spreads, out=np.zeros_like(spreads), where=spreads > 0.0
    )
    return correlations


def _relative(before: NDArray[np.float64], after: NDArray[np.float64]) -> float | None:
    some = before != 0.0
    if not some.any():
        return None
    with np.errstate(over="ignore"):  # of no difference, but of a quotient
        mean = float(np.abs(1.0 - after[some] / before[some]).mean())
    return mean if np.isfinite(mean) else None
