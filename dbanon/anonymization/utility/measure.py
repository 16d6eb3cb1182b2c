"""Utility of a release: all measures, one after the other."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.utility.classifications import classifications
from dbanon.anonymization.utility.distributions import Bins, bins_of, distribution
from dbanon.anonymization.utility.queries import query_errors
from dbanon.anonymization.utility.readings import published_pairs, readings_of, source_pairs
from dbanon.domain.report import Association, Utility

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.anonymization.utility.distributions import Grid
    from dbanon.anonymization.utility.readings import Moments, Reading
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages
    from dbanon.domain.report import Classification, QueryError

    Floats = NDArray[np.float64]


def utility_of(
    released: Released,
    policy: Policy,
    *,
    generator: np.random.Generator,
    samples: int,
    stages: Stages,
) -> Utility:
    """Return the utility of a release, without the measures after a stop.

    samples: most source rows for training and testing classifiers; everything else uses all rows.
    """
    if not released.table.n_rows or not released.n_classes:
        return Utility()
    with stages("utility"):
        readings = readings_of(released)
        columns = [(reading, bins_of(reading)) for reading in readings]
        compared = (distribution(reading, bins) for reading, bins in columns if bins is not None)
        distributions = tuple(each for each in compared if len(each.bins) > 1)
        associations: tuple[Association, ...] = ()
        if len(columns) > 1 and not stages.stopped:
            associations = (association(columns),)
    queries: tuple[QueryError, ...] = ()
    if not stages.stopped:
        with stages("queries"):
            drawn = policy.sample is not None
            queries = query_errors(readings, generator=generator, scaled=drawn)
    learned: tuple[Classification, ...] = ()
    if not stages.stopped:
        with stages("classifiers"):
            learned = classifications(
                released, readings, policy=policy, generator=generator, samples=samples
            )
    return Utility(distributions, associations, queries, learned)


class _Side(NamedTuple):
    """One column of a pair: the moments of numbers, or shares in bins; possibly neither."""

    number: Moments | None = None
    bins: Floats | None = None


def association(columns: Sequence[tuple[Reading, Bins | Grid | None]]) -> Association:
    """Return the matrices of the source and of the release; O(pairs of columns * rows)."""
    d = len(columns)
    source: list[list[float | None]] = [[None] * d for _ in range(d)]
    published: list[list[float | None]] = [[None] * d for _ in range(d)]
    of_source = [_of_codes(*column) for column in columns]
    of_release = [_of_labels(*column) for column in columns]
    for i, j in combinations(range(d), 2):
        a, b = columns[i][0], columns[j][0]
        exact = _strength(source_pairs(a, b), of_source[i], of_source[j])
        source[i][j] = source[j][i] = _figure(exact)
        joint = published_pairs(a, b)
        if joint is not None:
            published[i][j] = published[j][i] = _figure(
                _strength(joint, of_release[i], of_release[j])
            )
    for i in range(d):
        source[i][i] = published[i][i] = 1.0
    return Association(
        tuple(reading.name for reading, _ in columns),
        _frozen(source),
        _frozen(published),
        exact=tuple(reading.name for reading, _ in columns if _is_exact(reading)),
    )


def _is_exact(reading: Reading) -> bool:
    return reading.classes is not None


def _frozen(matrix: list[list[float | None]]) -> tuple[tuple[float | None, ...], ...]:
    return tuple(map(tuple, matrix))


def _of_codes(reading: Reading, bins: Bins | Grid | None) -> _Side:
    if reading.line is not None:
        return _Side(reading.line.spread(reading.line.begins, reading.line.ends))
    if not isinstance(bins, Bins):
        return _Side()
    return _Side(bins=np.eye(len(bins.names) + 1)[bins.of_code][:, :-1])


def _of_labels(reading: Reading, bins: Bins | Grid | None) -> _Side:
    if reading.line is not None:
        return _Side(reading.moments())
    return _Side(bins=bins.shares(reading)) if isinstance(bins, Bins) else _Side()


def _strength(joint: Any, a: _Side, b: _Side) -> float:  # noqa: ANN401 - scipy has no types
    """Return the correlation, the correlation ratio or Cramer's V; NaN if undefined."""
    if a.number is not None and b.number is not None:
        return _correlation(joint, a.number, b.number)
    if a.bins is not None and b.bins is not None:
        return cramers_v(a.bins.T @ (joint @ b.bins))
    if a.number is not None and b.bins is not None:
        return _ratio(joint, a.number, b.bins)
    if b.number is not None and a.bins is not None:
        return _ratio(joint.T.tocsr(), b.number, a.bins)
    return float("nan")


def _figure(value: float) -> float | None:
    """Return an association rounded to three digits, None if undefined."""
    return round(value, 3) + 0.0 if np.isfinite(value) else None


def _correlation(joint: Any, x: Moments, y: Moments) -> float:  # noqa: ANN401 - scipy has no types
    """Return Pearson's correlation of the rows in which both numbers are known."""
    known = joint.multiply(x.known[:, None]).multiply(y.known[None, :]).tocsr()
    total = float(known.sum())
    if total <= 0.0:
        return float("nan")
    of_x, of_y = np.asarray(known.sum(axis=1)).ravel(), np.asarray(known.sum(axis=0)).ravel()
    mean_x, mean_y = of_x @ x.mean / total, of_y @ y.mean / total
    dx, dy = x.mean - mean_x, y.mean - mean_y
    covariance = float(dx @ (known @ dy)) / total
    spread_x = of_x @ (dx**2 + x.variance) / total
    spread_y = of_y @ (dy**2 + y.variance) / total
    return _over(covariance, float(np.sqrt(spread_x * spread_y)))


def _ratio(joint: Any, x: Moments, bins: Floats) -> float:  # noqa: ANN401 - scipy has no types
    """Return the share of the deviation of a number between the bins (eta)."""
    known = joint.multiply(x.known[:, None]).tocsr()
    of_x = np.asarray(known.sum(axis=1)).ravel()
    total = float(of_x.sum())
    if total <= 0.0:
        return float("nan")
    dx = x.mean - of_x @ x.mean / total
    within = np.asarray(known @ bins)
    rows, sums = within.sum(axis=0), dx @ within
    between = float((sums**2 / np.where(rows > 0.0, rows, 1.0)).sum()) / total
    spread = float(of_x @ (dx**2 + x.variance)) / total
    return float(np.sqrt(_over(between, spread)))


def cramers_v(table: Floats) -> float:
    """Return Cramer's V of a contingency table, NaN if all rows or columns but one are empty."""
    table = table[table.sum(axis=1) > 0.0][:, table.sum(axis=0) > 0.0]
    least = min(table.shape) - 1
    if least < 1:
        return float("nan")
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / (total * least)))


def _over(part: float, whole: float) -> float:
    tiny = 1e-30
    return part / whole if whole > tiny else float("nan")
