"""To guess about what a value is: near in its order, or below the same node of its taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.case import NotTried, Tries, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case, Target
    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.domain.report import Attack

_NEAR = 10  # of so many parts of an order, in one of which values are near each other
_SETS = 1_000_000  # numbers of the table of sets


def similarity(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Guess the likeliest set of near values (Li et al., ICDE 2007)."""
    weight, found = 1 / case.crowd, False
    for target in case.some_target():
        near = near_values(target.domain, target.whole)
        if near is None:
            continue
        found = True
        yield _tried(case, target, near, weight)
    if not found:
        raise NotTried("no sensitive column has an order or a taxonomy by which values are near")


def _tried(
    case: Case, target: Target, near: NDArray[np.int64], weight: NDArray[np.float64]
) -> Attack:
    n_sets = int(near.max()) + 1
    right = np.zeros(case.tried)
    parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
    for some, belief in parts:
        right[some] = guesses(_joined(belief, near, n_sets)) == near[target.truth[some]]
    usual = int(np.bincount(near, target.whole, minlength=n_sets).argmax())
    expected = None
    if n_sets * len(near) <= _SETS:
        expected = case.admitted(target.limits.most_of(np.arange(n_sets)[:, None] == near))
    return _result(case, target, right, float((near[target.truth] == usual).mean()), expected)


def _result(
    case: Case,
    target: Target,
    right: NDArray[np.float64],
    baseline: float,
    expected: float | None,
) -> Attack:
    return result(
        "similarity",
        target.name,
        Tries(
            right,
            baseline=baseline,
            expected=expected,
            candidates=float(np.median(case.coverage.sums(case.released.size))),
            words="guesses which set of near values the person's is in",
        ),
    )


def near_values(domain: SensitiveDomain, whole: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the number of the set of near values of each code, None if nothing says what is near.

    Below the root of a taxonomy, the values of one branch; in an order, those of one tenth of the
    ranks, or of the range if all are numbers, of the values that are published: the source may have
    one that is far from all. NULL is near nothing. whole: (n_codes,) how often each is published.
    """
    known = len(domain.labels) - (domain.labels[-1:] == (None,))
    shown = np.flatnonzero(whole[:known])
    if domain.tree is not None:
        found = _branches(domain)[:known]
    elif domain.has_order and len(shown) > 1:
        place = np.cumsum(whole[:known] > 0) - 1.0
        numbers = domain.numbers[:known]
        if np.isfinite(numbers[shown]).all():
            place = np.clip(np.nan_to_num(numbers, nan=np.inf), *numbers[shown[[0, -1]]])
        place -= place[shown[0]]
        place /= max(place[shown[-1]], 1e-300)
        found = np.clip((place * _NEAR).astype(np.int64), 0, _NEAR - 1)
    else:
        return None
    if len(np.unique(found[shown])) in {1, len(shown)}:
        return None  # all values are near each other, or none of them
    sets = np.unique(found, return_inverse=True)[1]
    alone = np.arange(len(whole) - known) + (int(sets.max()) + 1)
    return np.append(sets, alone).astype(np.int64)


def _branches(domain: SensitiveDomain) -> NDArray[np.int64]:
    """Return the node below the root that is above each value, or the value."""
    tree = domain.tree
    assert tree is not None  # noqa: S101 - asked for only where there is one
    top = np.arange(len(tree.parent))
    for node in range(1, len(top)):
        if tree.parent[node] != 0:
            top[node] = top[tree.parent[node]]
    return np.where(domain.leaf >= 0, top[tree.leaves[domain.leaf]], -1)


def _joined(
    belief: NDArray[np.float64], near: NDArray[np.int64], n_sets: int
) -> NDArray[np.float64]:
    """Return how likely each set of values is, (p, n_sets)."""
    order = np.argsort(near, kind="stable")
    starts = np.searchsorted(near[order], np.arange(n_sets))
    return np.asarray(np.add.reduceat(belief[:, order], starts, axis=1), np.float64)
