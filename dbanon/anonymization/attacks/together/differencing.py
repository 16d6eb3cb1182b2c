"""To subtract classes that both relations publish from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.case import NotTried, Tries, result
from dbanon.anonymization.attacks.together.pair import codes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Target
    from dbanon.anonymization.attacks.together.pair import Pair
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.report import Attack
    from dbanon.models.tally import Tally


def differencing(pair: Pair) -> Iterator[Attack]:
    """Guess the values of those by whom a class of one relation is larger than that of the other.

    That is where both publish the same of the quasi-identifiers, and the values of the smaller are
    among those of the larger. Fewer than k persons are in the difference, or it is a class.
    """
    first, second = pair.first.released, pair.second.released
    mine, other = alike(first, second)
    k = max(min(pair.first.policy.k, pair.second.policy.k), 2)
    apart = np.abs(first.size[mine] - second.size[other])
    some = (apart > 0) & (apart < k)
    if not some.any():
        raise NotTried(
            f"no class is larger in one relation than in the other by fewer than {k} rows"
        )
    reasons, tried = [], 0
    for target, own in pair.targets():
        code = codes_in(target, own)
        lacking = np.flatnonzero(code < 0)  # values that only the other relation has
        code[lacking] = len(target.whole) + np.arange(len(lacking))
        size = len(target.whole) + len(lacking)
        before = _dense(target.tally, mine[some], np.arange(len(target.whole)), size)
        after = _dense(own.tally, other[some], code, size)
        try:
            found = _tried(target, before - after, np.maximum(before, after))
        except NotTried as error:  # of this column; classes may be nested by the next one
            reasons.append(error)
            continue
        tried += 1
        yield found
    if reasons and not tried:
        raise reasons[0]


def _tried(target: Target, change: NDArray[np.int64], larger: NDArray[np.int64]) -> Attack:
    """Return what comes of guessing the values of those who are in one class only.

    change, larger: (g, m) how many more of each value are in the first; and in either, at most.
    """
    nested = (change >= 0).all(axis=1) | (change <= 0).all(axis=1)
    found = np.abs(change[nested])
    persons = found.sum(axis=1)
    chances = np.repeat(found.max(axis=1, initial=0) / np.maximum(persons, 1), persons)
    share = larger[nested].max(axis=1, initial=0) / np.maximum(larger[nested].sum(axis=1), 1)
    baseline = float(np.repeat(share, persons).mean()) if persons.sum() else 0.0
    return result(
        "differencing",
        target.name,
        Tries(
            chances,
            baseline=baseline,
            expected=None,
            candidates=float(np.median(np.repeat(persons, persons))) if persons.sum() else None,
            words="subtracts classes that both relations publish; the baseline guesses by the"
            " larger class",
        ),
    )


def alike(first: Released, second: Released) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of which two releases publish the same, by their numbers in each.

    Raises NotTried when the releases do not have the same quasi-identifiers.
    """
    names = [column.name for column in first.columns]
    if not names or sorted(names) != sorted(column.name for column in second.columns):
        raise NotTried("the relations do not have the same quasi-identifiers")
    others = {column.name: column for column in second.columns}
    mine = np.zeros(first.n_classes, np.int64)
    other = np.zeros(second.n_classes, np.int64)
    for column in first.columns:
        pair = others[column.name]
        number = {label: i for i, label in enumerate(dict.fromkeys(column.labels + pair.labels))}
        of_mine = np.array([number[label] for label in column.labels], np.int64)[column.index]
        of_other = np.array([number[label] for label in pair.labels], np.int64)[pair.index]
        keys = np.concatenate([mine * len(number) + of_mine, other * len(number) + of_other])
        joint = np.unique(keys, return_inverse=True)[1]
        mine, other = joint[: len(mine)], joint[len(mine) :]
    _, at_first, at_second = np.intersect1d(mine, other, return_indices=True)
    return at_first.astype(np.int64), at_second.astype(np.int64)


def _dense(
    tally: Tally, classes: NDArray[np.int64], code: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Return how often each value is in each of some classes, (g, size); code: of each value."""
    part = tally.of(classes)
    key = part.classes * size + code[part.values]
    counts = np.bincount(key, part.counts, minlength=len(classes) * size)
    return counts.reshape(len(classes), size).astype(np.int64)
