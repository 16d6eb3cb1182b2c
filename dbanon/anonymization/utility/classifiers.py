"""Classifiers that learn from cells, and what they make of rows of the source.

A cell becomes features as an analyst would make them: a number is the middle of its cell, of any
other column each value, or node of a taxonomy, is a feature, which has the share of it in the cell.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.utility.bins import categories_of
from dbanon.anonymization.utility.queries import MOST_PARTS, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from dbanon.anonymization.utility.readings import Moments, Reading

    Floats = NDArray[np.float64]

BOOSTING, LOGISTIC = "gradient boosting", "logistic regression"
_TREES, _LEAST_ROUNDS, _MOST_ROUNDS = 300, 15, 100
_STEPS = 500


class Features(NamedTuple):
    """The features of each label and of each code, (n, f) both."""

    labels: Floats
    codes: Floats


class Score(NamedTuple):
    """The share that was predicted right, and the area under the curve, None if it has none."""

    accuracy: float
    auc: float | None


def features_of(reading: Reading) -> Features:
    """Return what is learned from a column."""
    if reading.line is not None:
        of_codes = reading.line.spread(reading.line.begins, reading.line.ends)
        return Features(_of_numbers(reading.moments()), _of_numbers(of_codes))
    parts = parts_of(reading)
    if len(np.unique(parts)) > MOST_PARTS + 1:
        parts = categories_of(reading).of_code
    kept = np.unique(parts)
    of_labels = [reading.covered(parts == part) for part in kept]
    return Features(np.array(of_labels).T, (parts[:, None] == kept).astype(np.float64))


def _of_numbers(moments: Moments) -> Floats:
    """Return numbers, those of NULL in the middle, and how much of each is NULL."""
    places = np.where(moments.known > 0.0, moments.mean, 0.5)
    return np.column_stack([places, 1.0 - moments.known])


def scores(
    train: Floats,
    wanted: NDArray[Any],
    *,
    test: Floats,
    truth: NDArray[Any],
    seed: int,
) -> Mapping[str, Score]:
    """Learn what is wanted of some rows, and predict that of others.

    Where there is one value only, that is what is predicted.
    """
    if len(np.unique(wanted)) < 2:  # noqa: PLR2004 - classifiers refuse
        only = Score(float((truth == wanted[:1]).mean()), 0.5)
        return {BOOSTING: only, LOGISTIC: only}
    from threadpoolctl import threadpool_limits

    found = {}
    for name, model in _models(len(np.unique(wanted)), seed).items():
        # threads that wait for each other on busy processors take many times as long
        with threadpool_limits(1), warnings.catch_warnings():
            # as far as it came is what an analyst would take
            warnings.simplefilter("ignore", _convergence_warning())
            model.fit(train, wanted)
            likely = model.predict_proba(test)
        right = model.classes_[likely.argmax(axis=1)] == truth
        found[name] = Score(float(right.mean()), _area(likely, model.classes_, truth))
    return found


def _models(n_values: int, seed: int) -> Mapping[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # each round grows one tree for each value
    rounds = min(max(_TREES // n_values, _LEAST_ROUNDS), _MOST_ROUNDS)
    linear = LogisticRegression(max_iter=_STEPS)
    return {
        BOOSTING: HistGradientBoostingClassifier(max_iter=rounds, random_state=seed),
        LOGISTIC: make_pipeline(StandardScaler(), linear),
    }


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    warning: type[Warning] = ConvergenceWarning
    return warning


def _area(likely: Floats, values: NDArray[Any], truth: NDArray[Any]) -> float | None:
    """Return the area under the curve, of several values the mean of each against the others.

    Each counts with its rows.
    """
    from sklearn.metrics import roc_auc_score

    areas, weights = [], []
    for value in np.unique(truth):
        is_value = truth == value
        if is_value.all():
            return None
        place = np.flatnonzero(values == value)
        column = likely[:, place[0]] if len(place) else np.zeros(len(truth))
        areas.append(float(roc_auc_score(is_value, column)))
        weights.append(int(is_value.sum()))
    return float(np.average(areas, weights=weights)) if areas else None
