"""Estimate the loss of a new search from neighbouring rows, at a small share of its cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.errors import DbanonError
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import Policy

_PARTS = 4
_ROWS, _ROWS_OF_OTHERS = 10_000, 2_000
"""Of all parts together: for Mondrian, and for algorithms that a policy names."""
_GLANCE = 500


def parts(problem: Problem) -> list[Problem]:
    """Return the rows in at most four parts of neighbours, with all rows of each person.

    Sampled rows would be farther apart than all rows. Which ones are chosen depends on
    quasi-identifiers and chance only. Empty for anatomy, whose loss is that of buckets.
    """
    if problem.policy.anatomy or not problem.encoded.quasi:
        return []
    rows = _ROWS if problem.policy.algorithm == "auto" else _ROWS_OF_OTHERS
    if problem.encoded.n_rows <= rows:
        return [problem]
    chance = np.random.default_rng(0)
    columns = [column.codes for column in problem.encoded.quasi]
    return [_part(problem, neighbours(columns, rows // _PARTS, chance)) for _ in range(_PARTS)]


def neighbours(
    columns: Sequence[NDArray[np.int32]], size: int, chance: np.random.Generator
) -> NDArray[np.int64]:
    """Return at most ``size`` rows that are close together, by cuts of the widest column.

    Cuts are at the median of few rows, as those of all rows would take longer than the search.
    """
    rows = np.arange(len(columns[0]), dtype=np.int64)
    widths = [max(int(np.ptp(column)), 1) for column in columns]
    while len(rows) > size:
        few = chance.choice(rows, _GLANCE)
        spreads = [
            np.ptp(column[few]) / width for column, width in zip(columns, widths, strict=True)
        ]
        column = columns[int(np.argmax(spreads))]
        cut = np.median(column[few])
        low = column[rows] <= cut if chance.random() < 1 / 2 else column[rows] < cut
        low = low if low.any() and not low.all() else np.arange(len(rows)) < len(rows) // 2
        low = low if chance.random() < 1 / 2 else ~low
        rows = rows[low if 2 * low.sum() >= size else ~low]
    return rows


def _part(problem: Problem, rows: NDArray[np.int64]) -> Problem:
    subjects = problem.subjects
    if subjects is not None:
        rows = np.flatnonzero(np.isin(subjects, subjects[rows]))
        subjects = np.unique(subjects[rows], return_inverse=True)[1].astype(np.int32)
    draws = None if problem.draws is None else problem.draws[rows]
    return replace(problem, encoded=problem.encoded.take(rows), subjects=subjects, draws=draws)


def ncp_of_search(problems: Sequence[Problem]) -> float | None:
    """Return about the NCP of grouping from scratch, None if it is unknown.

    An upper bound as a rule: Mondrian takes the place of ``auto``, which finds finer classes.
    """
    try:
        losses = list(_losses(problems))
    except DbanonError:
        return None
    total = sum(rows for rows, _ in losses)
    return sum(rows * ncp for rows, ncp in losses) / total if total else None


def _losses(problems: Sequence[Problem]) -> Iterator[tuple[int, float]]:
    for one in problems:
        found = solve(replace(one, policy=_plain(one.policy)), seed=0, stages=Stages())
        yield one.encoded.n_rows, found.loss.ncp


def _plain(policy: Policy) -> Policy:
    if policy.algorithm != "auto":
        return policy
    return replace(policy, algorithm="mondrian", params={}, block=None)
