"""Classifiers that learn from a release of some rows and are tested on others, unpublished.

What is learned is the salary class, which is published as it is here and is no quasi-identifier. A
cell becomes features as an analyst would make them of the functions there are: a range its middle
(``dbanon.middle``), a label or set the share that each value of its column has in it
(``dbanon.shares_of_labels``), which of an exact value is a one and zeros. Occupation is published
as it is. Two thirds of the rows are published; the original values of the rest are the test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from samples.datasets import load, read
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from analysts.releases import AGE, SETTINGS, domain, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 7
LEARNED, AS_IS = "salary-class", "occupation"
TEST = 1 / 3


def lines() -> Iterator[dict[str, object]]:
    """Yield the accuracy after learning from the source, and from each release."""
    everything = load("adult", more_quasi=(AS_IS,), not_quasi=(LEARNED,))
    names = [column.name for column in everything.encoded.quasi]
    values = {name: domain(everything, name) for name in names}
    source, order = read("adult"), np.random.default_rng(SEED).permutation(len(read("adult")))
    held = round(TEST * len(order))
    train, test = np.sort(order[held:]), np.sort(order[:held])
    exact = {name: _one_hot(source[name].to_pylist(), values[name]) for name in names}
    target = source[LEARNED].to_numpy(zero_copy_only=False) == ">50K"
    known = {name: shares[test] for name, shares in exact.items()}

    def judge(cells, rows):
        return scores(features(cells, values), target[rows], features(known, values), target[test])

    yield {"k": 1, "l": 1, "algorithm": "the source", "NCP %": 0.0} | judge(
        {name: shares[train] for name, shares in exact.items()}, train
    )
    for setting in SETTINGS:
        for name, _, release in releases(setting, not_quasi=(LEARNED,), rows=train):
            shown = release.group >= 0
            group, rows = release.group[shown], train[shown]
            cells = {AS_IS: exact[AS_IS][rows]}
            for column, shares in release.shares.items():
                place = [values[column].index(value) for value in release.values[column]]
                cells[column] = np.zeros((len(rows), len(values[column])))
                cells[column][:, place] = shares[group]
            line = {"k": setting.k, "l": setting.l, "algorithm": name, "NCP %": 100 * release.ncp}
            yield line | judge(cells, rows)


def _one_hot(column, values):
    place = {value: i for i, value in enumerate(values)}
    return np.eye(len(values))[[place[value] for value in column]]


def features(cells, values) -> np.ndarray:
    """Return the middle of the ages, and how likely each value of the other columns is."""
    return np.hstack(
        [
            cells[name] @ np.array([values[name]], float).T if name == AGE else cells[name]
            for name in sorted(cells)
        ]
    )


def scores(train, wanted, test, truth) -> dict[str, float]:
    """Return the accuracies in percent, and the area under the curve of the boosted trees."""
    trees = HistGradientBoostingClassifier(random_state=SEED)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    with threadpool_limits(1):  # so that CPU seconds are those of the work
        trees.fit(train, wanted)
        linear.fit(train, wanted)
        return {
            "boosting": 100 * trees.score(test, truth),
            "AUC %": 100 * float(roc_auc_score(truth, trees.predict_proba(test)[:, 1])),
            "logistic": 100 * linear.score(test, truth),
        }
