"""Requirements of groups; recoding, certification and measurement of published classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.merging import failing, population_models
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.metrics import Metric, Publication, prefixes, publication, report
from dbanon.anonymization.registry import METRICS, RECODINGS, misfit, recoding_of, unknown
from dbanon.domain.assignment import (
    Assignment,
    EncodedColumn,
    EncodedTable,
    GroupValues,
    LossReport,
    ValueColumn,
)
from dbanon.domain.errors import DbanonError, PolicyError, Unsatisfiable
from dbanon.domain.policy import PREFIX, ModelSpec, Policy
from dbanon.domain.table import quote_identifier
from dbanon.models.base import Scope
from dbanon.models.demands import all_demands, demands_of, linked_demands, meets, unlinked, wholes
from dbanon.models.registry import MODELS, require_valid, title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.anonymization.encoding.population import Population


_HEAVIEST = 1e100  # sums and squares of such weights are finite
_WEIGHED = 5_000
"""The most classes of which recodings are weighed."""


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """A publication that meets its models: the groups, their published values and the loss."""

    assignment: Assignment
    values: GroupValues
    loss: LossReport


def outcome(
    published: Publication,
    policy: Policy,
    *,
    is_limited: bool = True,
    n_sampled: int = 0,
    population: Population | None = None,
    metrics: Mapping[str, Metric] = METRICS,
) -> Outcome:
    """Certify that the published classes meet the policy, and measure their loss.

    is_limited: whether the budget applies; n_sampled: rows outside the budget; population: for
    models of a population. Raises as ``certify``.
    """
    table = published.table
    n_limited = table.n_rows - n_sampled
    budget = n_sampled + (budget_of(policy, n_limited) if is_limited else n_limited)
    certify(published, policy, population, budget=budget)
    demands = (*demands_of(table, policy), *linked_demands(table, policy))
    asked = Requirement(policy.k, policy.l, demands=demands)
    loss = report(published, metrics)
    loss = replace(loss, sensitive_aware=asked.sensitive_aware, n_sampled=n_sampled)
    return Outcome(published.assignment, published.values, loss)


def budget_of(policy: Policy, n_rows: int) -> int:
    """Return how many of the rows may be suppressed by the policy."""
    return Requirement(policy.k, max_suppressed=policy.max_suppressed).budget(n_rows)


def rest_of(policy: Policy, n_rows: int, *, lost: int) -> Policy | None:
    """Return the policy of the other rows once ``lost`` are suppressed, None if that is too many.

    Its budget is the rest, so that all suppressed rows are within the budget of ``n_rows``.
    """
    left = budget_of(policy, n_rows) - lost
    return None if left < 0 else replace(policy, max_suppressed=left / (n_rows - lost))


def publish(
    encoded: EncodedTable,
    policy: Policy,
    assignment: Assignment,
    *,
    values: GroupValues | None = None,
) -> Publication:
    """Return the published classes; values: of every group, recoded if omitted."""
    values = published_values(encoded, assignment) if values is None else values
    return publication(encoded, assignment, values, k=policy.k)


def published_values(encoded: EncodedTable, assignment: Assignment) -> GroupValues:
    """Return the published value of every group, by the recodings of the columns."""
    columns = tuple(
        RECODINGS[recoding_of(column)].publish(column, assignment) for column in encoded.quasi
    )
    return GroupValues(columns, assignment.n_groups)


def requirement_of(encoded: EncodedTable, policy: Policy) -> Requirement:
    """Return the requirement of every group; raise if the whole table does not meet it."""
    _check_policy(encoded, policy)
    demands = demands_of(encoded, policy)
    requirement = Requirement(policy.k, policy.l, policy.max_suppressed, demands)
    if encoded.n_rows < max(requirement.k, 1):
        msg = f"the table has {encoded.n_rows} rows, fewer than k = {requirement.k}"
        raise Unsatisfiable(msg, hint="lower --k or add rows")
    for i, name in enumerate(encoded.sensitive_names):
        distinct = len(np.unique(encoded.sensitive[:, i]))
        if distinct < requirement.l:
            msg = (
                f"sensitive column {quote_identifier(name)} has {distinct} distinct values,"
                f" fewer than l = {requirement.l}"
            )
            raise Unsatisfiable(msg, hint=f"lower l to {distinct}, or give the column another role")
    # Groups too small for a model would all be merged one by one, and the largest grow fastest.
    least = max((demand.model.least_rows for demand in demands), default=1)
    return replace(
        requirement,
        k=max(requirement.k, min(least, encoded.n_rows)),
        demands=(*demands, *linked_demands(encoded, policy)),
    )


def _check_policy(encoded: EncodedTable, policy: Policy) -> None:
    for spec in policy.models:
        if spec.name not in MODELS:
            raise unknown("privacy model", spec.name, MODELS)
        require_valid(spec)
        asks = MODELS[spec.name].scope is Scope.SENSITIVE and spec.params.get("l", 2) != 1
        if asks and not encoded.sensitive_names:
            msg = f"the policy asks for {title(spec)} but names no sensitive column"
            raise PolicyError(msg, hint="give a column the role sensitive")
    if not encoded.quasi:
        msg = "the policy names no quasi-identifier, so every row would look alike"
        hint = "give a column the role quasi"
        if policy.subject is not None:
            hint += ", or publish it together with its persons: --dataset FILE"
        raise PolicyError(msg, hint=hint)
    if not 0 <= policy.max_suppressed < 1:
        msg = f"max_suppressed = {policy.max_suppressed} is not a fraction in [0, 1)"
        raise PolicyError(msg, hint="0.02 allows two rows of a hundred to be left out")
    for column in encoded.quasi:
        if not 0.0 <= column.rule.weight <= _HEAVIEST:
            msg = f"column {quote_identifier(column.name)}: a weight is a number from 0 to 1e100"
            raise PolicyError(msg, hint="leave the weight out to use 1")


def certify(
    published: Publication, policy: Policy, population: Population | None, *, budget: int
) -> None:
    """Raise unless the published classes meet every model and suppression is within budget."""
    table = published.table
    rows = np.flatnonzero(published.classes >= 0)
    if published.n_suppressed > budget or not len(rows):
        raise _defect(policy)
    _require_kept(table, published.classes)
    demands = all_demands(table, policy)
    around = any(demand.model.is_around for demand in demands)
    coarser = prefixes(published) if around else ()
    compared = wholes(table, demands, rows, coarser=coarser)
    for demand, whole in zip(demands, compared, strict=True):
        if meets(table, demand, rows, published.classes[rows], whole=whole).all():
            continue
        if not demand.model.is_monotone:
            raise _unmet(demand.spec, policy)
        raise _defect(policy)
    group, values = published.assignment.group, published.values
    if (spec := unlinked(table, policy, group=group, values=values)) is not None:
        raise _unmet(spec, policy)
    counting = population_models(policy)
    if counting and (population is None or failing(published, counting, population)[0].any()):
        raise _defect(policy)


def _require_kept(table: EncodedTable, classes: NDArray[np.int32]) -> None:
    """Raise Unsatisfiable unless the rows of each class agree in all kept columns."""
    shown = np.flatnonzero(classes >= 0)
    for column in table.kept_columns:
        codes, of_class = column.codes[shown], np.empty(int(classes.max()) + 1, np.int32)
        of_class[classes[shown]] = codes
        if (codes != of_class[classes[shown]]).any():
            msg = f"no classes that meet the policy agree in {quote_identifier(column.name)}"
            raise Unsatisfiable(msg, hint="leave keep out, or ask for less")


def _unmet(spec: ModelSpec, policy: Policy) -> Unsatisfiable:
    msg = f"{title(spec)} is not met by groups of {policy.algorithm!r}"
    return Unsatisfiable(msg, hint="ask for less, or choose another algorithm")


def _defect(policy: Policy) -> DbanonError:
    msg = f"algorithm {policy.algorithm!r} made classes that do not meet the policy"
    return DbanonError(msg, hint="--algorithm mondrian; this is a defect of dbanon")


def losses_by_recoding(
    encoded: EncodedTable, assignment: Assignment
) -> dict[str, dict[str, float]]:
    """Return the mean loss of each column under every possible recoding, least first."""
    group = np.where(assignment.group < _WEIGHED, assignment.group, np.int32(-1))
    weighed = Assignment(group, min(assignment.n_groups, _WEIGHED))
    left_out = assignment.n_suppressed / encoded.n_rows
    return {
        column.name: {
            name: left_out + (1.0 - left_out) * loss for name, loss in _losses(column, weighed)
        }
        for column in encoded.quasi
    }


def _losses(column: EncodedColumn, assignment: Assignment) -> list[tuple[str, float]]:
    """Return the loss of a column under every possible recoding, least first."""
    shown, found = assignment.group >= 0, []
    size = np.bincount(assignment.group[shown], minlength=assignment.n_groups)
    for name, recoding in RECODINGS.items():
        if name == PREFIX != column.rule.recoding:  # another tree
            continue
        if misfit(name, column) is None:
            published = recoding.publish(column, assignment)
            found.append((name, float(np.average(published.loss[published.index], weights=size))))
    return sorted(found, key=lambda one: round(one[1], 12))


def nobody(encoded: EncodedTable) -> Outcome:
    """Return an outcome that suppresses all rows."""
    columns = tuple(
        ValueColumn(
            name=column.name,
            recoding=recoding_of(column),
            kind=column.kind,
            index=np.zeros(0, np.int32),
            labels=(),
            loss=np.zeros(0),
        )
        for column in encoded.quasi
    )
    size = encoded.n_rows
    lost = dict.fromkeys((column.name for column in columns), 1.0)
    return Outcome(
        Assignment(np.full(size, -1, np.int32), 0),
        GroupValues(columns, 0),
        LossReport(size, size, 0, 0, 1.0, lost, sensitive_aware=False),
    )


def join(outcomes: Sequence[Outcome]) -> Outcome:
    """Concatenate the outcomes of parts; losses are means over all rows, metrics are omitted."""
    ends = np.cumsum([len(one.assignment.group) for one in outcomes]).tolist()
    rows = [np.arange(start, end) for start, end in pairwise([0, *ends])]
    parts = zip(rows, (one.assignment for one in outcomes), strict=True)
    assignment = Assignment.of_parts(ends[-1], parts)
    columns = zip(*(one.values.columns for one in outcomes), strict=True)
    losses = [one.loss for one in outcomes]
    total = sum(loss.n_rows for loss in losses)

    def mean(numbers: Sequence[float]) -> float:
        weighted = (n * loss.n_rows for n, loss in zip(numbers, losses, strict=True))
        return sum(weighted) / total if total else 0.0

    is_weighted = any(loss.weighted_ncp is not None for loss in losses)
    return Outcome(
        assignment,
        GroupValues(tuple(map(joined, columns)), assignment.n_groups),
        LossReport(
            n_rows=total,
            n_suppressed=sum(loss.n_suppressed for loss in losses),
            n_classes=sum(loss.n_classes for loss in losses),
            smallest_class=min((o.smallest_class for o in losses if o.n_classes), default=0),
            ncp=mean([loss.ncp for loss in losses]),
            columns={name: mean([o.columns[name] for o in losses]) for name in losses[0].columns},
            sensitive_aware=any(loss.sensitive_aware for loss in losses),
            weighted_ncp=mean([loss.asked for loss in losses]) if is_weighted else None,
        ),
    )


def joined(columns: Sequence[ValueColumn]) -> ValueColumn:
    """Return the published values of one column for the groups of all parts."""
    starts = np.cumsum([0, *(len(column.labels) for column in columns)])
    parts = zip(columns, starts[:-1], strict=True)
    return replace(
        columns[0],
        index=np.concatenate([column.index + start for column, start in parts]).astype(np.int32),
        labels=tuple(label for column in columns for label in column.labels),
        loss=np.concatenate([column.loss for column in columns]),
    )
