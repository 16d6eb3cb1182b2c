"""Classifiers that learn from a release of some rows and are tested on others, unpublished.

What is learned is the salary class, which is published as it is here and is no quasi-identifier.
Occupation is published as it is, too. Two thirds of the rows are published; the original values of
the rest are the test. Features and classifiers are those of dbanon's own reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from samples.datasets import read

from analysts.releases import SETTINGS, releases
from dbanon.anonymization.utility.measure import BOOSTING, LOGISTIC, features_of, scores
from dbanon.anonymization.utility.readings import readings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.anonymization.released.cells import Released

SEED = 7
LEARNED = "salary-class"
TEST = 1 / 3


def lines() -> Iterator[dict[str, object]]:
    """Yield the accuracy after learning from the source, and from each release."""
    target = read("adult")[LEARNED].to_numpy(zero_copy_only=False) == ">50K"
    order = np.random.default_rng(SEED).permutation(len(target))
    held = round(TEST * len(order))
    train, test = np.sort(order[held:]), np.sort(order[:held])

    def judge(features, wanted, known):
        found = scores(features, wanted, test=known, truth=target[test], seed=SEED)
        return {
            "boosting": 100 * found[BOOSTING].accuracy,
            "AUC %": 100 * (found[BOOSTING].auc or 0.0),
            "logistic": 100 * found[LOGISTIC].accuracy,
        }

    known = None
    for setting in SETTINGS:
        for release in releases(setting, not_quasi=(LEARNED,), rows=train):
            if known is None:
                exact = of_source(next(releases(setting, not_quasi=(LEARNED,))).seen)
                known = exact[test]
                line = {"k": 1, "l": 1, "algorithm": "the source", "NCP %": 0.0}
                yield line | judge(exact[train], target[train], known)
            ncp = 100 * release.ncp
            line = {"k": setting.k, "l": setting.l, "algorithm": release.name, "NCP %": ncp}
            shown = release.seen.classes >= 0
            yield line | judge(of_release(release.seen), target[train][shown], known)


def of_source(seen: Released) -> np.ndarray:
    """Return the features of all rows of the source."""
    columns = readings_of(seen)
    return np.hstack([features_of(column).codes[column.codes] for column in columns])


def of_release(seen: Released) -> np.ndarray:
    """Return the features of the published rows; the sensitive ones are what they are."""
    shown = np.flatnonzero(seen.classes >= 0)
    parts = []
    for column in readings_of(seen):
        features = features_of(column)
        if column.classes is None:
            parts.append(features.labels[column.labels[seen.classes[shown]]])
        else:
            parts.append(features.codes[column.codes[shown]])
    return np.hstack(parts)
