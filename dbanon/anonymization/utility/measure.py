"""Utility of a release: all measures, one after the other."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.anonymization.released.cells import Released, covers
from dbanon.anonymization.utility.distributions import (
    Bins,
    Grid,
    bins_of,
    categories_of,
    distribution,
)
from dbanon.anonymization.utility.queries import MOST_PARTS, parts_of, query_errors
from dbanon.anonymization.utility.readings import (
    Moments,
    Reading,
    published_pairs,
    readings_of,
    source_pairs,
)
from dbanon.domain.report import Association, Classification, QueryError, Utility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]
    Counts = NDArray[np.int64]


BOOSTING, LOGISTIC = "gradient boosting", "logistic regression"
_TREES, _LEAST_ROUNDS, _MOST_ROUNDS = 300, 15, 100
_FEATURES = 128  # with more, fewer trees are grown
_FEWEST_BINS, _MOST_BINS = 2, 255  # which the classifier permits
_LEAF = 20  # rows of a leaf
_STEPS = 500


class Features(NamedTuple):
    """Features of each label and of each code, (n, f) both."""

    labels: Singles
    codes: Singles


class Score(NamedTuple):
    """Share of correct predictions, and the area under the curve, None if undefined."""

    accuracy: float
    auc: float | None


def features_of(reading: Reading) -> Features:
    """Return the features of a column."""
    if reading.line is not None:
        of_codes = reading.line.spread(reading.line.begins, reading.line.ends)
        return Features(_of_numbers(reading.moments()), _of_numbers(of_codes))
    parts = parts_of(reading)
    if len(np.unique(parts)) > MOST_PARTS + 1:
        parts = categories_of(reading).of_code
    kept = np.unique(parts)
    of_labels = [reading.covered(parts == part) for part in kept]
    codes = parts[:, None] == kept
    return Features(np.array(of_labels, np.float32).T, codes.astype(np.float32))


def _of_numbers(moments: Moments) -> Singles:
    """Return numbers, those of NULL in the middle, and the share of NULL in each."""
    places = np.where(moments.known > 0.0, moments.mean, 0.5)
    return np.column_stack([places, 1.0 - moments.known]).astype(np.float32)


def scores(
    train: NDArray[Any], wanted: NDArray[Any], *, test: NDArray[Any], truth: NDArray[Any], seed: int
) -> Mapping[str, Score]:
    """Train on some rows, and predict others; a single value is predicted as such."""
    if len(np.unique(wanted)) < 2:  # noqa: PLR2004 - classifiers refuse
        only = Score(float((truth == wanted[:1]).mean()), 0.5)
        return {BOOSTING: only, LOGISTIC: only}
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    found = {}
    for name, (features, model) in classifiers(train, len(np.unique(wanted)), seed=seed).items():
        # threads that wait for each other on busy processors take many times as long
        with threadpool_limits(1), warnings.catch_warnings():
            # as far as it came is what an analyst would take
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(train[:, features], wanted)
            likely = model.predict_proba(test[:, features])
        right = model.classes_[likely.argmax(axis=1)] == truth
        found[name] = Score(float(right.mean()), _area(likely, model.classes_, truth))
    return found


def classifiers(
    train: NDArray[Any], n_values: int, *, seed: int
) -> Mapping[str, tuple[list[int], Any]]:
    """Return the features of ``train`` that classifiers need, and classifiers, not trained yet."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    varying, splitting, distinct = _useful(train)
    # each round grows one tree for each value, in time proportional to features
    trees = _TREES * _FEATURES // max(len(varying), _FEATURES)
    rounds = min(max(trees // n_values, _LEAST_ROUNDS), _MOST_ROUNDS)
    # each feature has as many bins as the one of most values
    bins = min(max(distinct, _FEWEST_BINS), _MOST_BINS)
    boosting = HistGradientBoostingClassifier(
        max_iter=rounds, max_bins=bins, min_samples_leaf=_LEAF, random_state=seed
    )
    linear = make_pipeline(StandardScaler(copy=False), LogisticRegression(max_iter=_STEPS))
    return {BOOSTING: (splitting, boosting), LOGISTIC: (varying, linear)}


def _useful(train: NDArray[Any]) -> tuple[list[int], list[int], int]:
    """Return the features that vary, those by which trees can split, and the most values of one.

    Of features that order the rows alike, trees would take the first.
    """
    varying, splitting, most = [], dict[bytes, int](), 0
    for feature, values in enumerate(train.T):
        _, ranks, rows = np.unique(values, return_inverse=True, return_counts=True)
        most = max(most, len(rows))
        if len(rows) > 1:
            varying.append(feature)
        if len(train) - rows.max() >= _LEAF:
            splitting.setdefault(ranks.astype(np.uint16).tobytes(), feature)
    return varying or [0], list(splitting.values()) or [0], most


def _area(likely: NDArray[Any], values: NDArray[Any], truth: NDArray[Any]) -> float | None:
    """Return the area under the curve; the weighted mean of one against the rest for several."""
    from sklearn.metrics import roc_auc_score

    areas, (there, weights) = [], np.unique(truth, return_counts=True)
    if len(there) < 2:  # noqa: PLR2004 - nothing to tell apart
        return None
    for value in there:
        place = np.flatnonzero(values == value)
        column = likely[:, place[0]] if len(place) else np.zeros(len(truth))
        areas.append(float(roc_auc_score(truth == value, column)))
    return float(np.average(areas, weights=weights))


MOST_ROWS = 20_000
_MOST_VALUES = 20
HELD_OUT = 1 / 3
"""Of which share of the rows what was learned is tested."""
_FEWEST = 30
_AT_ONCE = 20_000_000


def target_of(readings: Sequence[Reading], policy: Policy) -> Reading | None:
    """Return the sensitive column to predict: the class label's, or the first of few values."""
    able = [
        reading
        for reading in readings
        if reading.classes is not None
        and 1 < (reading.of_labels > 0.0).sum() <= _MOST_VALUES
        and (reading.of_codes > 0.0).sum() > 1
    ]
    labels = (reading for reading in able if reading.name == policy.class_label)
    return next(labels, able[0] if able else None)


def classifications(
    released: Released,
    readings: Sequence[Reading],
    *,
    policy: Policy,
    generator: np.random.Generator,
    samples: int,
) -> tuple[Classification, ...]:
    """Train on the release and on equally many source rows, test on a third; empty if too few."""
    target = target_of(readings, policy)
    quasi = [reading for reading in readings if reading.classes is None]
    n_rows = min(released.table.n_rows, samples, MOST_ROWS)
    if target is None or not quasi or n_rows < _FEWEST:
        return ()
    rows = generator.permutation(released.table.n_rows)[:n_rows]
    n_test = round(HELD_OUT * n_rows)
    test, train = np.sort(rows[:n_test]), np.sort(rows[n_test:])
    entries = _drawn(_without(released, target, test, generator), len(train), generator)
    if not len(entries):
        return ()
    seed = int(generator.integers(2**31))
    learned, from_release = _learned(
        target, quasi, train=train, test=test, entries=entries, seed=seed
    )
    guesser = float((target.codes[test] == np.bincount(target.codes[train]).argmax()).mean())
    return tuple(
        Classification(
            column=target.name,
            classifier=classifier,
            accuracy=_rounded(score.accuracy, from_release[classifier].accuracy, guesser),
            auc=_areas(score, from_release[classifier]),
            rows=len(entries),
            tested=len(test),
        )
        for classifier, score in learned.items()
    )


def _learned(
    target: Reading,
    quasi: Sequence[Reading],
    *,
    train: Counts,
    test: Counts,
    entries: Counts,
    seed: int,
) -> tuple[Mapping[str, Score], Mapping[str, Score]]:
    """Return the scores from source rows and from published ones; holds the features of one."""
    assert target.classes is not None  # noqa: S101 - it is sensitive
    features = [(reading, features_of(reading)) for reading in quasi]

    def of_rows(some: Counts) -> Singles:
        return np.hstack([each.codes[q.codes[some]] for q, each in features])

    judged = partial(scores, test=of_rows(test), truth=target.codes[test], seed=seed)
    learned = judged(of_rows(train), target.codes[train])
    classes = target.classes[entries]
    published = np.hstack([each.labels[q.labels[classes]] for q, each in features])
    return learned, judged(published, target.labels[entries])


def _areas(source: Score, release: Score) -> tuple[float, float, float] | None:
    if source.auc is None or release.auc is None:
        return None
    return _rounded(source.auc, release.auc, 0.5)


def _rounded(source: float, release: float, guesser: float) -> tuple[float, float, float]:
    return round(source, 4), round(release, 4), round(guesser, 4)


def _without(
    released: Released, target: Reading, rows: Counts, generator: np.random.Generator
) -> Counts:
    """Return the published rows of each pair of class and value, without those of some persons."""
    assert target.classes is not None  # noqa: S101 - it is sensitive
    keys = target.classes.astype(np.int64) * target.n_codes + target.labels
    left = target.rows.copy()
    step = max(1, _AT_ONCE // max(released.n_classes, 1))
    for at in range(0, len(rows), step):
        some = rows[at : at + step]
        start, classes = _candidates(released, some)
        for row, first, last in zip(some, start, start[1:], strict=False):
            wanted = classes[first:last].astype(np.int64) * target.n_codes + target.codes[row]
            places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            places = places[(keys[places] == wanted) & (left[places] > 0)]
            if len(places):
                left[places[generator.integers(len(places))]] -= 1
    return left


def _candidates(released: Released, rows: Counts) -> tuple[Counts, NDArray[np.int32]]:
    """Return the classes that may contain some rows, and the start of each row's."""
    if released.classes is None:
        found = covers(released, rows)
        return found.start, found.classes
    classes = released.classes[rows]
    return np.concatenate([[0], np.cumsum(classes >= 0)]), classes[classes >= 0]


def _drawn(rows: Counts, n: int, generator: np.random.Generator) -> Counts:
    """Return the entries of n randomly drawn published rows, or of all."""
    total = int(rows.sum())
    drawn = generator.choice(total, min(n, total), replace=False, shuffle=False)
    return np.searchsorted(np.cumsum(rows), np.sort(drawn), side="right")


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
        exact=tuple(reading.name for reading, _ in columns if reading.classes is not None),
    )


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
