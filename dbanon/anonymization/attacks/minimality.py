"""To reason back from a class that was made wider to why that was necessary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import hypergeom

from dbanon.anonymization.attacks.beliefs import beliefs, guesses
from dbanon.anonymization.attacks.case import NotTried, Tries, result
from dbanon.models.tally import joint_codes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.attacks.case import Case, Target
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.report import Attack

_ROWS = 10_000_000  # no more of a class than scipy counts with


def minimality(case: Case, generator: np.random.Generator) -> Iterator[Attack]:  # noqa: ARG001 - it draws nothing
    """Take a class for one that was widened because of sensitive values (Wong et al., VLDB 2007).

    Who shares all quasi-identifiers with k persons could have been published with these alone.
    Where no class is theirs alone, some value must have been too frequent among them.
    """
    alike, some = _widened(case)
    if not len(some):
        raise NotTried("no persons share all quasi-identifiers and are published with others")
    found = False
    for target in case.some_target():
        if target.limits.most is None and target.limits.distinct < 2:  # noqa: PLR2004 - of any class
            continue
        found = True
        yield _tried(case, target, alike, some)
    if not found:
        raise NotTried("no model of sensitive values could have made a class wider")


def _tried(case: Case, target: Target, alike: NDArray[np.int64], some: NDArray[np.int64]) -> Attack:
    weight = np.ones(case.released.n_classes)
    rows = case.coverage.sums(case.released.size)
    most = target.limits.most
    share = 1 / max(target.limits.distinct - 1, 1) if most is None else most
    right = np.zeros(case.tried)
    parts = beliefs(case.coverage, target.tally, weight, n_codes=len(target.whole))
    for part, belief in parts:
        within = some[(some >= part.start) & (some < part.stop)]
        counts = np.rint(belief[within - part.start] * rows[within, None]).astype(np.int64)
        guess = guesses(suspicion(counts, alike[within], share=share, strictly=most is not None))
        right[within] = guess == target.truth[within]
    return result(
        "minimality",
        target.name,
        Tries(
            right[some],
            baseline=float((target.truth[some] == target.guess).mean()),
            expected=None,
            candidates=float(np.median(rows[some])),
            words="takes a value for too frequent among persons who were published with others",
        ),
    )


def suspicion(
    counts: NDArray[np.int64], alike: NDArray[np.int64], *, share: float, strictly: bool
) -> NDArray[np.float64]:
    """Return how likely each value is of a person, given that some value was too frequent.

    counts: (p, m) how often each value is in the class of a person; alike: (p,) of how many of its
    rows the person is one, who would have been published apart had no value had more than the
    share of them, or not strictly, as much. Any rows of the class are as likely theirs as others;
    a value counts by how many of theirs have it in all cases in which it is too frequent.
    """
    size = counts.sum(axis=1)
    among = np.minimum(alike, size)
    least = np.floor(share * among + 1e-9) + 1 if strictly else np.ceil(share * among - 1e-9)
    person, value = np.nonzero(counts)
    rows, has = np.minimum(size[person], _ROWS), counts[person, value]
    drawn = among[person]
    # The mean of a hypergeometric count from some number on, by the distribution of one draw less.
    beyond = hypergeom.sf(least[person] - 2, rows - 1, has - 1, drawn - 1)
    found = np.zeros(counts.shape)
    found[person, value] = drawn * has / rows * np.nan_to_num(beyond)
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1), counts / size[:, None])


def _widened(case: Case) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many are alike in all quasi-identifiers, and those of them who are not apart.

    That is of each person tried; and the numbers of those who are k at least and in no class that
    says exactly what they are.
    """
    table = case.released.table
    if not table.quasi or not case.released.columns:
        raise NotTried("the relation has no quasi-identifiers")
    alike_as = joint_codes(table.codes)
    alike = np.bincount(alike_as)[alike_as[case.rows]]
    exact = _exact(case.released)
    apart = np.add.reduceat(
        np.append(exact[case.coverage.classes], False), case.coverage.start[:-1]
    )
    return alike, np.flatnonzero((alike >= max(case.policy.k, 2)) & (apart == 0))


def _exact(released: Released) -> NDArray[np.bool_]:
    """Return which classes say exactly what their rows are."""
    exact = np.ones(released.n_classes, np.bool_)
    for column in released.columns:
        codes = column.hi - column.lo + 1
        single = np.where(column.nulls, codes <= 0, codes == 1) & (not column.is_point)
        exact &= single[column.index]
    return exact
