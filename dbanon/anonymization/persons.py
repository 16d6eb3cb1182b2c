"""Requirements of groups of persons with several rows, and how many rows each person keeps."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import merged
from dbanon.anonymization.adjusting.repair import enforce, failing, rows_in_reach
from dbanon.anonymization.outcome import requirement_of, rest_of
from dbanon.domain.assignment import Assignment, EncodedColumn, EncodedTable
from dbanon.domain.errors import Unsatisfiable
from dbanon.domain.policy import ModelSpec, Policy
from dbanon.domain.table import quote_identifier
from dbanon.models.base import COLUMNS, Demand, Scope
from dbanon.models.demands import achieved_by_persons, all_demands, persons_of, rows_meet
from dbanon.models.registry import MODELS, is_strict, sensitive_of, texts, title

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.interfaces import Requirement

    Demands = Callable[[EncodedTable, Policy], tuple[Demand, ...]]
    Judge = Callable[[Assignment], NDArray[np.bool_]]


_ONE_ROW = "publish one row of each: --rows-per-subject 1"


def profiles(encoded: EncodedTable, subjects: NDArray[np.int32]) -> EncodedTable:
    """Return one row per person, (p,); a varying column becomes two, of least and greatest code."""
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
        is_interval = column.taxonomy is None and column.rule.recoding != "set"
        is_interval &= int(greatest.max()) < column.size
        lower = replace(column, rule=half, codes=least, end="least" if is_interval else None)
        upper = replace(column, rule=half, codes=greatest, end="greatest" if is_interval else None)
        columns += [lower, upper]
    return replace(encoded.take(order[bounds]), quasi=tuple(columns))


def require_safe(encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32]) -> set[str]:
    """Return the sensitive columns in which rows of a person differ; Unsatisfiable if unsafe."""
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
    """Return True if all persons meet the policy as one class, without raising."""
    if int(subjects.max(initial=-1)) + 1 < policy.k:
        return False
    try:
        persons = Persons(encoded, policy, subjects)
        one_each = encoded.take(persons.first)
        rows_in_reach(one_each, requirement_of(one_each, persons.by_profile))
        everyone = Assignment(np.zeros(encoded.n_rows, np.int32), 1)
        persons.require_possible(everyone, requirement_of(encoded, policy))
    except Unsatisfiable:
        return False
    return True


def _columns(spec: ModelSpec, encoded: EncodedTable) -> tuple[str, ...]:
    """Return the sensitive columns that a model reads."""
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
    """Raise Unsatisfiable for a model that is not defined for these persons."""
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
    for name in (column for column in _columns(spec, encoded) if column in varying):
        codes = encoded.sensitive[:, encoded.sensitive_names.index(name)]
        differ = len(np.unique(subjects[codes != codes[first][subjects]]))
        raise Unsatisfiable(
            f"{differ:,} persons have rows that differ in {quote_identifier(name)}: {title(spec)}"
            " does not say how often such a person counts",
            hint="ask for distinct or probabilistic diversity, or for alpha",
        )


class Persons:
    """Persons, possibly with several values in a column, and the requirement of their groups.

    subjects: as in ``Problem``; first: (p,) a row of each. Raises Unsatisfiable for a model that is
    not defined for these persons.
    """

    def __init__(self, encoded: EncodedTable, policy: Policy, subjects: NDArray[np.int32]) -> None:
        self._encoded, self._policy, self._subjects = encoded, policy, subjects
        self._varying = require_safe(encoded, policy, subjects)
        self.first = np.unique(subjects, return_index=True)[1]

    @property
    def by_profile(self) -> Policy:
        """The policy with the models of the columns in which each person has one value."""
        return replace(self._policy, models=tuple(self._of_profiles()))

    def _of_profiles(self) -> Iterator[ModelSpec]:
        for spec in self._policy.models:
            columns = _columns(spec, self._encoded)
            kept = tuple(name for name in columns if name not in self._varying)
            if kept == columns:
                yield spec
            elif kept:
                yield ModelSpec(spec.name, {**spec.params, COLUMNS: kept})

    @cached_property
    def _demands(self) -> list[Demand]:
        """Demands on the columns in which a person may have several values."""
        return [
            demand
            for demand in all_demands(self._encoded, self._policy)
            if demand.column is not None
            and self._encoded.sensitive_names[demand.column] in self._varying
            and _columns(demand.spec, self._encoded)
        ]

    def judge(self, requirement: Requirement, demands: Demands = all_demands) -> Judge:
        """Return a function that finds the groups of rows with persons that fail."""
        one_each = self._encoded.take(self.first)
        asked = replace(requirement, demands=demands(one_each, self.by_profile))

        def fail(found: Assignment) -> NDArray[np.bool_]:
            groups = Assignment(found.group[self.first], found.n_groups)
            return failing(one_each, groups, asked) | self.failing(found)[0]

        return fail

    def merged(self, assignment: Assignment, requirement: Requirement) -> Assignment:
        """Merge groups until all meet the demands on rows and on persons."""
        self.require_possible(assignment, requirement)
        then = partial(enforce, self._encoded, requirement=requirement, regroup=False)
        why = "persons who are left out are missing"
        return merged(
            self._encoded,
            then(assignment),
            lambda found: self.failing(found)[0],
            then=then,
            impossible=lambda found: _unsatisfiable(self.failing(found)[1], why),
        )

    def require_possible(self, assignment: Assignment, requirement: Requirement) -> None:
        """Raise Unsatisfiable unless all grouped rows, as one group, meet the demands."""
        shown = np.flatnonzero(assignment.group >= 0)
        everyone = Assignment(np.where(assignment.group < 0, -1, 0).astype(np.int32), 1)
        for demand in requirement.demands:
            if demand.model.is_monotone and not rows_meet(self._encoded, demand, shown):
                raise _unsatisfiable(title(demand.spec), "all rows as one class do not meet it")
        bad, reason = self.failing(everyone)
        if bad.any():
            raise _unsatisfiable(reason, "all persons as one class do not meet it")

    def failing(self, assignment: Assignment) -> tuple[NDArray[np.bool_], str]:
        """Return the groups that fail a demand on persons, and the last such demand."""
        shown, k = np.flatnonzero(assignment.group >= 0), self._policy.k
        groups, subjects = assignment.group[shown], self._subjects[shown]
        bad, reason = persons_of(groups, subjects) < k, f"{k}-anonymity"
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


def require_within(
    assignment: Assignment, requirement: Requirement, *, n_sampled: int = 0, of: str = ""
) -> None:
    """Raise Unsatisfiable if the suppressed persons have more rows than the budget."""
    n_rows = len(assignment.group) - n_sampled
    left_out = assignment.n_suppressed - n_sampled
    if left_out > requirement.budget(n_rows):
        raise Unsatisfiable(
            f"the persons left out have {left_out:,} rows{of}, more than allowed",
            hint="raise --max-suppressed, or set it to 0",
        )


def dense(subjects: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return persons renumbered without gaps, in their order."""
    return np.unique(subjects, return_inverse=True)[1].astype(np.int32)


def places(subjects: NDArray[np.int32], draws: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the rank of each row among the rows of its person, by random draw."""
    order = np.lexsort((draws, subjects))
    size = np.bincount(subjects)
    place = np.empty(len(subjects), np.int64)
    place[order] = np.arange(len(subjects)) - np.repeat(np.cumsum(size) - size, size)
    return place


def kept_levels(times: NDArray[np.int64], most: int | str | None) -> NDArray[np.int64]:
    """Return how many rows each person may keep, (p,); most: a number, or text for all.

    None if the number of rows is not published; then 1 represents all.
    """
    if most is None:
        return np.minimum(times, 1)
    return np.minimum(times, most) if isinstance(most, int) else times.copy()


def levels(
    encoded: EncodedTable,
    policy: Policy,
    subjects: NDArray[np.int32],
    place: NDArray[np.int64],
    *,
    least: int | None = None,
) -> tuple[NDArray[np.int64], int, Policy]:
    """Return the kept rows of each person, (p,), the number of lost rows, and the others' policy.

    A person keeps all its rows, up to the policy's number, if the persons with that number meet the
    policy among themselves. Otherwise it keeps the next lower number that occurs. The last persons
    are suppressed if the budget allows it: all rows that they might keep are lost, and the others
    have the rest of the budget. Otherwise the others are lowered to their number. least: persons
    that suffice instead, whatever their values.
    """
    most = kept_levels(np.bincount(subjects), policy.rows_per_subject)
    level = most.copy()

    def holds(persons: NDArray[np.bool_]) -> bool:
        if least is not None:
            return int(persons.sum()) >= least
        rows = np.flatnonzero(persons[subjects] & (place < level[subjects]))
        return is_possible(encoded.take(rows), policy, dense(subjects[rows]))

    waiting = np.zeros(len(level), np.bool_)
    for number in np.unique(level)[::-1]:
        waiting |= level == number
        level[waiting] = number
        if holds(waiting):
            waiting[:] = False
    if not waiting.any():
        return level, 0, policy
    n_lost = int(most[waiting].sum())
    rest = rest_of(policy, n_lost + int(level[~waiting].sum()), lost=n_lost)
    if rest is not None:
        level[waiting] = 0
        return level, n_lost, rest
    for number in np.unique(level[~waiting]):
        if holds(waiting):
            break
        waiting |= level == number
        level[waiting] = level.min()
    return level, 0, policy
