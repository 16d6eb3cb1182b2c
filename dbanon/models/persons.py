"""Achievements of classes if a person may have several rows and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.models.base import OfPersons
from dbanon.models.tally import joint_codes, tally

if TYPE_CHECKING:
    from numpy.typing import NDArray


def persons_of(classes: NDArray[np.int32], subjects: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the number of distinct persons of each class; classes, subjects: (n,)."""
    persons: NDArray[np.int64] = tally(classes, joint_codes(subjects[:, None])).distinct()
    return persons


def achieved_by_persons(
    measure: OfPersons,
    classes: NDArray[np.int32],
    subjects: NDArray[np.int32],
    values: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the achievement of each class by a measure of persons; all (n,).

    Models without a measure would count a person with several values several times, so that a value
    of all persons of a class could still seem rare.
    """
    rows = joint_codes(np.column_stack([classes, subjects, values]))
    first = np.unique(rows, return_index=True)[1]
    held = tally(classes[first], values[first])
    persons = persons_of(classes, subjects).astype(float)
    most = held.most(held.counts.astype(float))
    share: NDArray[np.float64] = most / persons
    if measure is OfPersons.TOP_SHARE:
        return share
    if measure is OfPersons.INVERSE_TOP_SHARE:
        return 1.0 / share
    sole = held.counts == 1
    by_value = np.zeros((len(held.size), int(values.max()) + 1), np.bool_)
    by_value[held.classes[sole], held.values[sole]] = True
    alone = by_value[classes[first], values[first]]
    owners = joint_codes(np.column_stack([classes[first], subjects[first]]))
    owned = np.bincount(owners, weights=alone)
    most_owned = np.zeros(len(held.size))
    np.maximum.at(most_owned, classes[first], owned[owners])
    left: NDArray[np.float64] = held.distinct().astype(float) - np.maximum(most_owned - 1, 0)
    return left
