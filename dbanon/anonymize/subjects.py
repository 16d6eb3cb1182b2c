"""Grouping persons who own several rows: all rows of a person share its class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymize.metrics import publication, report
from dbanon.anonymize.pipeline import run
from dbanon.anonymize.registry import METRICS
from dbanon.anonymize.resize import take
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.models import title
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymize.pipeline import Outcome
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.stages import Stages

_BY_PERSONS = frozenset({K_ANONYMITY, "l-diversity", "p-sensitivity"})


def run_by_subject(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    *,
    seed: int,
    stages: Stages,
) -> Outcome:
    """Group persons, one profile each, and let all rows of a person inherit its group.

    subjects: (n,) the person of each row, 0..p-1 without gaps. k counts persons, and so does l,
    of whom each has one value. Raises Unsatisfiable for persons whose rows differ in a
    quasi-identifier or, where a model is about it, in a sensitive column, and for models that
    weigh values by rows.
    """
    for spec in policy.models:
        if spec.name not in _BY_PERSONS:
            msg = f"{title(spec)} weighs rows, and {quote_identifier(policy.subject or '')} has"
            raise Unsatisfiable(f"{msg} several of one person", hint="publish one row a person")
    first = np.unique(subjects, return_index=True)[1]
    for column in encoded.quasi:
        _require_same(column.codes, subjects, first, name=column.name)
    if any(spec.name != K_ANONYMITY and spec.params != {"l": 1} for spec in policy.models):
        for name, values in zip(encoded.sensitive_names, encoded.sensitive.T, strict=True):
            _require_same(values, subjects, first, name=name)
    outcome = run(take(encoded, first), policy, seed=seed, stages=stages)
    group = outcome.assignment.group[subjects]
    assignment = Assignment(group, outcome.assignment.n_groups)
    _require_budget(assignment, policy)
    published = publication(encoded, assignment, outcome.values, k=policy.k)
    loss = replace(report(published, METRICS), sensitive_aware=outcome.loss.sensitive_aware)
    return replace(outcome, assignment=assignment, loss=loss)


def _require_same(
    codes: NDArray[np.int32], subjects: NDArray[np.int32], first: NDArray[np.int64], *, name: str
) -> None:
    differ = len(np.unique(subjects[codes != codes[first][subjects]]))
    if differ:
        raise Unsatisfiable(
            f"{differ:,} persons have rows that differ in {quote_identifier(name)}: in which class"
            " each of them is would tell who they are",
            hint="make the column the same for all rows of a person, or publish one row a person",
        )


def _require_budget(assignment: Assignment, policy: Policy) -> None:
    if assignment.n_suppressed > policy.max_suppressed * len(assignment.group):
        raise Unsatisfiable(
            f"the persons left out have {assignment.n_suppressed:,} rows, more than allowed",
            hint="raise --max-suppressed, or set it to 0",
        )
