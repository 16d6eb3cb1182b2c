"""Grouping persons who own several rows: all rows of a person share its class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import rows_in_reach
from dbanon.anonymization.adjusting.merging import merge_with_nearest
from dbanon.anonymization.adjusting.repair import enforce
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.pipeline import Outcome, certify, check_feasible, published_values, run
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import ModelSpec
from dbanon.domain.table import quote_identifier
from dbanon.models.base import Scope
from dbanon.models.demands import all_demands, rows_meet
from dbanon.models.parameters import COLUMNS
from dbanon.models.persons import achieved_by_persons, persons_of
from dbanon.models.registry import MODELS
from dbanon.models.specs import is_strict, sensitive_of, texts, title

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement
    from dbanon.domain.assignment import EncodedColumn, EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages


_ONE_ROW = "publish one row of each: --rows-per-subject 1"


def run_by_subject(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    *,
    seed: int,
    stages: Stages,
) -> Outcome:
    """Group persons, one profile each, and let all rows of a person inherit its group.

    subjects: (n,) the person of each row, 0..p-1 without gaps. k counts persons, and every model
    holds of persons, each with its one value, as well as of rows, which is what readers can repeat.
    Where rows of a person differ in a quasi-identifier, all its values count as known of the
    person: what is published of a class holds of every row of everyone in it. Where they differ in
    a sensitive column, only models that are safe then can be asked of it (``of_persons`` of
    ``dbanon.models.base``). Raises Unsatisfiable for other models.
    """
    varying = require_safe(encoded, policy, subjects)
    requirement = check_feasible(encoded, policy)
    first = np.unique(subjects, return_index=True)[1]
    by_profile = replace(policy, models=tuple(of_profiles(policy, encoded, varying)))
    outcome = run(profiles(encoded, subjects), by_profile, seed=seed, stages=stages)
    assignment = Assignment(outcome.assignment.group[subjects], outcome.assignment.n_groups)
    assignment = Persons(encoded, policy, subjects, varying).merged(assignment, requirement)
    _require_budget(assignment, policy)
    values = published_values(encoded, assignment)
    persons = Assignment(assignment.group[first], assignment.n_groups)
    published = publication(encoded.take(first), persons, values, k=policy.k)
    certify(published, by_profile, None, budget=len(first))
    published = publication(encoded, assignment, values, k=policy.k)
    certify(published, policy, None, budget=requirement.budget(encoded.n_rows))
    loss = replace(report(published, METRICS), sensitive_aware=requirement.sensitive_aware)
    return Outcome(assignment, values, loss)


def profiles(encoded: EncodedTable, subjects: NDArray[np.int32]) -> EncodedTable:
    """Return one row a person, (p,), who may have several values of a quasi-identifier.

    Such a column becomes two of half the weight, with the least and the greatest code of each
    person: they describe the set of its values as they describe that of a group's.
    """
    order = np.argsort(subjects, kind="stable")
    bounds = np.flatnonzero(np.diff(subjects[order], prepend=-1))
    columns: list[EncodedColumn] = []
    for column in encoded.quasi:
        codes = column.codes[order]
        least, greatest = np.minimum.reduceat(codes, bounds), np.maximum.reduceat(codes, bounds)
        if (least == greatest).all():
            columns.append(replace(column, codes=least))
            continue
        half = replace(column.rule, weight=column.rule.weight / 2)
        columns += [replace(column, rule=half, codes=ends) for ends in (least, greatest)]
    return replace(encoded.take(order[bounds]), quasi=tuple(columns))


def require_safe(encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32]) -> set[str]:
    """Return the sensitive columns in which rows of a person differ.

    Raises Unsatisfiable where a model does not say what it means of them.
    """
    first = np.unique(subjects, return_index=True)[1]
    varying = {
        name
        for name, codes in zip(encoded.sensitive_names, encoded.sensitive.T, strict=True)
        if (codes != codes[first][subjects]).any()
    }
    for spec in policy.models:
        _require_safe(spec, encoded, subjects, varying, subject=policy.subject or "")
    return varying


def is_possible(encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32]) -> bool:
    """Whether all persons as one class meet the policy; subjects as ``run_by_subject`` takes them.

    Raises nothing: persons whose rows do not allow the question do not meet it.
    """
    first = np.unique(subjects, return_index=True)[1]
    if len(first) < policy.k:
        return False
    try:
        varying = require_safe(encoded, policy, subjects)
        by_profile = replace(policy, models=tuple(of_profiles(policy, encoded, varying)))
        profiles = encoded.take(first)
        rows_in_reach(profiles, check_feasible(profiles, by_profile))
        everyone = Assignment(np.zeros(encoded.n_rows, np.int32), 1)
        requirement = check_feasible(encoded, policy)
        Persons(encoded, policy, subjects, varying).require_possible(everyone, requirement)
    except Unsatisfiable:
        return False
    return True


def _columns(spec: ModelSpec, encoded: EncodedTable) -> tuple[str, ...]:
    """Return the sensitive columns that a model looks at."""
    if MODELS[spec.name].scope is Scope.LINKS:
        named = (*texts(spec, "x"), *texts(spec, "y"))
        return tuple(name for name in named if name in encoded.sensitive_names)
    if spec.params == {"l": 1}:
        return ()
    asked = sensitive_of(spec, encoded.sensitive_names)
    return encoded.sensitive_names if asked and is_strict(spec) else asked


def _require_safe(
    spec: ModelSpec,
    encoded: EncodedTable,
    subjects: NDArray[np.int32],
    varying: Collection[str],
    *,
    subject: str,
) -> None:
    """Raise Unsatisfiable for a model that does not say what it means of these persons."""
    model = MODELS[spec.name]
    if model.one_row is not None:
        raise Unsatisfiable(
            f"{title(spec)} is about {model.one_row}, and {quote_identifier(subject)} has several"
            " rows of one person",
            hint=_ONE_ROW,
        )
    if model.of_persons is not None and not is_strict(spec):
        return
    first = np.unique(subjects, return_index=True)[1]
    for name in _columns(spec, encoded):
        if name in varying:
            codes = encoded.sensitive[:, encoded.sensitive_names.index(name)]
            _require_same(codes, subjects, first, name=name, model=title(spec))


def of_profiles(
    policy: Policy, encoded: EncodedTable, varying: Collection[str]
) -> Iterator[ModelSpec]:
    """Yield the models of the columns in which a person has one value."""
    for spec in policy.models:
        columns = _columns(spec, encoded)
        kept = tuple(name for name in columns if name not in varying)
        if kept == columns:
            yield spec
        elif kept:
            yield ModelSpec(spec.name, {**spec.params, COLUMNS: kept})


class Persons:
    """Groups of persons, of whom some have several values."""

    def __init__(
        self,
        encoded: EncodedTable,
        policy: Policy,
        subjects: NDArray[np.int32],
        varying: Collection[str],
    ) -> None:
        self._encoded, self._subjects, self._k = encoded, subjects, policy.k
        self._demands = [
            demand
            for demand in all_demands(encoded, policy)
            if demand.column is not None
            and encoded.sensitive_names[demand.column] in varying
            and _columns(demand.spec, encoded)
        ]

    def merged(self, assignment: Assignment, requirement: Requirement) -> Assignment:
        """Merge groups until all meet the demands, of rows and of persons."""
        self.require_possible(assignment, requirement)
        while True:
            assignment = enforce(self._encoded, assignment, requirement, regroup=False)
            bad, reason = self.failing(assignment)
            if not bad.any():
                return assignment
            if assignment.n_groups == 1:
                raise _unsatisfiable(reason, "persons who are left out are missing")
            assignment = merge_with_nearest(self._encoded, assignment, bad)

    def require_possible(self, assignment: Assignment, requirement: Requirement) -> None:
        """Raise Unsatisfiable unless all that is in some group, as one, meets the demands."""
        shown = np.flatnonzero(assignment.group >= 0)
        everyone = Assignment(np.where(assignment.group < 0, -1, 0).astype(np.int32), 1)
        for demand in requirement.demands:
            if demand.model.is_monotone and not rows_meet(self._encoded, demand, shown):
                raise _unsatisfiable(title(demand.spec), "all rows as one class do not meet it")
        bad, reason = self.failing(everyone)
        if bad.any():
            raise _unsatisfiable(reason, "all persons as one class do not meet it")

    def failing(self, assignment: Assignment) -> tuple[NDArray[np.bool_], str]:
        """Return which groups do not meet a demand of persons, and the last of these demands."""
        shown = np.flatnonzero(assignment.group >= 0)
        groups, subjects = assignment.group[shown], self._subjects[shown]
        bad, reason = persons_of(groups, subjects) < self._k, f"{self._k}-anonymity"
        for demand in self._demands:
            measure = demand.model.of_persons
            assert measure is not None  # noqa: S101 - ``require_safe`` has refused the others
            values = self._encoded.sensitive[shown, demand.column or 0]
            level = achieved_by_persons(measure, groups, subjects, values)
            missed = ~demand.model.meets(level)
            reason = title(demand.spec) if missed.any() else reason
            bad |= missed
        return bad, reason


def _unsatisfiable(model: str, why: str) -> Unsatisfiable:
    return Unsatisfiable(
        f"{model} is impossible where a person may have several rows: {why}",
        hint=f"ask for less, or {_ONE_ROW}",
    )


def _require_same(
    codes: NDArray[np.int32],
    subjects: NDArray[np.int32],
    first: NDArray[np.int64],
    *,
    name: str,
    model: str,
) -> None:
    differ = len(np.unique(subjects[codes != codes[first][subjects]]))
    if differ:
        raise Unsatisfiable(
            f"{differ:,} persons have rows that differ in {quote_identifier(name)}: {model} does"
            " not say how often such a person counts",
            hint="ask for distinct or probabilistic diversity, or for alpha",
        )


def _require_budget(assignment: Assignment, policy: Policy) -> None:
    if assignment.n_suppressed > policy.max_suppressed * len(assignment.group):
        raise Unsatisfiable(
            f"the persons left out have {assignment.n_suppressed:,} rows, more than allowed",
            hint="raise --max-suppressed, or set it to 0",
        )
