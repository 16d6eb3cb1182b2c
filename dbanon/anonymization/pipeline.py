"""From an encoded table and a policy to groups, published values and their loss."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import crowding, rows_in_reach
from dbanon.anonymization.adjusting.population_merging import (
    cover_or_coarsen,
    failing,
    population_models,
    require_possible,
)
from dbanon.anonymization.adjusting.repair import finish
from dbanon.anonymization.algorithms.candidates import assign_in_blocks, least
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.metrics import information_loss, prefixes, publication, report
from dbanon.anonymization.parameters import LISTENER, listens, timed, typed
from dbanon.anonymization.registry import ALGORITHMS, METRICS, RECODINGS, default_recoding
from dbanon.anonymization.strata import group_apart, kept_columns, require_apart, require_kept
from dbanon.anonymization.threads import GivenUp, aside
from dbanon.domain import extras
from dbanon.domain.assignment import Assignment, GroupValues
from dbanon.domain.errors import DbanonError, PolicyError, Unsatisfiable
from dbanon.domain.policy import CENTER, DATE_PART, GLOBAL, OF_CELLS, PREFIX, SNAPPED
from dbanon.domain.table import quote_identifier
from dbanon.formats.document_reader import did_you_mean
from dbanon.models.base import Scope
from dbanon.models.demands import (
    all_demands,
    demands_of,
    linked_demands,
    meets,
    unlinked,
    wholes,
)
from dbanon.models.registry import MODELS
from dbanon.models.specs import require_valid, title

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from dbanon.anonymization.auto.space import Loss
    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.interfaces import Algorithm
    from dbanon.anonymization.loss.metrics import Publication
    from dbanon.domain.assignment import EncodedColumn, EncodedTable, LossReport
    from dbanon.domain.policy import ModelSpec, Policy
    from dbanon.domain.progress import Stages


_HEAVIEST = 1e100  # sums and squares of such weights are finite
_WEIGHED = 5_000
"""The most classes of which recodings are weighed."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """A publication that meets its models: who is in which group, what is shown, what it cost."""

    assignment: Assignment
    values: GroupValues
    loss: LossReport


def run(
    encoded: EncodedTable,
    policy: Policy,
    *,
    seed: int,
    stages: Stages,
    population: Population | None = None,
) -> Outcome:
    """Group the rows, recode the groups, and verify every model on the published classes.

    population: what the policy's models of a population count.

    Raises PolicyError for what the policy has wrong, Unsatisfiable when no partition of these rows
    meets it, KeyboardInterrupt when ``stages`` is stopped before there is a partition. Nothing is
    returned that does not meet every model.
    """
    requirement = check_feasible(encoded, policy)
    require_apart(encoded, policy)
    for column in encoded.quasi:
        recoding_of(column)
    publish = partial(published_values, encoded)
    require_possible(encoded, policy, population, publish=publish)
    with stages("cluster"):
        from dbanon.kernels.compile import on_compile

        with on_compile(lambda: stages.note("compiling kernels (once)")) as compiled:
            task = partial(_searched, encoded, policy, requirement, population, seed=seed)
            assignment = _unless_stopped(task, policy, stages)
    if compiled.seconds:
        stages.seconds["cluster"] -= compiled.seconds
        stages.seconds["compile"] = stages.seconds.get("compile", 0.0) + compiled.seconds
    with stages("recode"):
        values = publish(assignment)
        published = publication(encoded, assignment, values, k=policy.k)
        certify(published, policy, population, budget=requirement.budget(encoded.n_rows))
        loss = report(published, METRICS)
        loss = dataclasses.replace(loss, sensitive_aware=requirement.sensitive_aware)
        return Outcome(assignment, values, loss)


def _unless_stopped(
    search: Callable[..., Assignment], policy: Policy, stages: Stages
) -> Assignment:
    """Return what a search finds; raise KeyboardInterrupt if it is stopped and finds nothing."""
    listening = listens(algorithm_named(policy.algorithm))
    try:
        return aside(partial(search, stages=stages), until=lambda: stages.stopped and not listening)
    except GivenUp:
        raise KeyboardInterrupt from None  # nothing was found so far


def _searched(
    encoded: EncodedTable,
    policy: Policy,
    requirement: Requirement,
    population: Population | None,
    *,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows by the policy's algorithm, coarser where its models of a population ask."""
    if kept_columns(encoded):

        def group(part: EncodedTable, allowed: Policy) -> Assignment:
            own = timed(allowed, share=part.n_rows / encoded.n_rows)
            algorithm = make_algorithm(own, stages=stages)
            asked = check_feasible(part, own)
            return _grouped(part, asked, algorithm, policy=own, seed=seed, stages=stages)

        return group_apart(encoded, policy, check=check_feasible, group=group)
    algorithm = make_algorithm(policy, stages=stages)
    grouped = partial(_grouped, encoded, policy=policy, seed=seed, stages=stages)
    assignment = grouped(requirement, algorithm)
    if population is None:
        return assignment
    levels = _of_levels(algorithm, policy)
    return cover_or_coarsen(
        encoded,
        assignment,
        policy,
        population,
        publish=partial(published_values, encoded),
        regroup=lambda k: grouped(dataclasses.replace(requirement, k=k), levels),
    )


def _of_levels(algorithm: Algorithm, policy: Policy) -> Algorithm:
    """Return what groups again for classes that share nobody: ``auto`` has no such groups."""
    free = listens(algorithm_named(policy.algorithm))
    return ALGORITHMS["full-domain"]() if free else algorithm


def _grouped(
    encoded: EncodedTable,
    requirement: Requirement,
    algorithm: Algorithm,
    *,
    policy: Policy,
    seed: int,
    stages: Stages,
) -> Assignment:
    """Group the rows that can meet every model; leave some out and merge, as the policy has it."""
    rows = rows_in_reach(encoded, requirement)
    for text in crowding(encoded, rows, requirement):
        stages.note(text)
    if len(rows) == encoded.n_rows:
        part, left = encoded, requirement.budget(encoded.n_rows)
    else:
        part = encoded.take(rows)
        left = requirement.budget(encoded.n_rows) - (encoded.n_rows - len(rows))
        requirement = dataclasses.replace(requirement, max_suppressed=left / len(rows))
    if isinstance(algorithm, Auto):
        price = partial(_price, part, policy, budget=left, loss=algorithm.loss)
        assignment = least(
            algorithm, part, requirement, price=price, budget=left, seed=seed, stages=stages
        )
    else:
        assignment = assign_in_blocks(
            algorithm, part, requirement, block=policy.block, seed=seed, stages=stages
        )
        assignment = finish(part, assignment, requirement, budget=left, stages=stages)
    if part is encoded:
        return assignment
    group = np.full(encoded.n_rows, -1, np.int32)
    group[rows] = assignment.group
    return Assignment(group, assignment.n_groups)


def _price(
    encoded: EncodedTable, policy: Policy, assignment: Assignment, *, budget: int, loss: Loss
) -> tuple[bool, float]:
    """Return whether groups fail the policy as they are published, and what is lost then."""
    values = published_values(encoded, assignment)
    published = publication(encoded, assignment, values, k=policy.k)
    lost = information_loss(published) if loss == "il" else report(published, {}).asked
    try:
        certify(published, policy, None, budget=budget)
    except DbanonError:
        return True, lost
    return False, lost


def check_feasible(encoded: EncodedTable, policy: Policy) -> Requirement:
    """Return what every group must meet, or raise when the whole table does not meet it."""
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
            raise Unsatisfiable(msg, hint="lower --l")
    # Groups too small for a model would all be merged one by one, and the largest grow fastest.
    least = max((demand.model.least_rows for demand in demands), default=1)
    return dataclasses.replace(
        requirement,
        k=max(requirement.k, min(least, encoded.n_rows)),
        demands=(*demands, *linked_demands(encoded, policy)),
    )


def _check_policy(encoded: EncodedTable, policy: Policy) -> None:
    for spec in policy.models:
        if spec.name not in MODELS:
            raise _unknown("privacy model", spec.name, MODELS)
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


def make_algorithm(policy: Policy, *, stages: Stages) -> Algorithm:
    """Return the policy's algorithm with its parameters, and ``stages`` if it reports progress.

    Raises PolicyError naming the choices, ConfigError when a library that it needs is missing.
    """
    factory = algorithm_named(policy.algorithm)
    if library := getattr(factory, "NEEDS", None):
        extras.require(library, what=f"the algorithm {policy.algorithm}")
    chosen = typed(policy.algorithm, factory, policy.params)
    if not listens(factory):
        return factory(**chosen)
    if policy.block is not None:
        msg = f"{policy.algorithm} takes a table of any size and divides it by itself"
        raise PolicyError(msg, hint="leave out --block")
    return factory(**chosen, **{LISTENER: stages})


def algorithm_named(name: str) -> Callable[..., Algorithm]:
    """Return the algorithm of that name; raise PolicyError naming the choices."""
    if name not in ALGORITHMS:
        raise _unknown("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def recoding_of(column: EncodedColumn) -> str:
    """Return the name of the column's recoding; raise PolicyError when it cannot publish it."""
    name = column.rule.recoding or default_recoding(column)
    if name not in RECODINGS:
        raise _unknown("recoding", name, RECODINGS)
    if not accepts(name, column):
        fitting = [other for other in RECODINGS if accepts(other, column)]
        msg = f"recoding {name!r} cannot publish column {quote_identifier(column.name)}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(fitting)}")
    if column.has_floor and name not in OF_CELLS:
        msg = f"recoding {name!r} publishes single values, and {quote_identifier(column.name)}"
        hint = f"choose one of {', '.join(sorted(OF_CELLS))}, or leave the floor out"
        raise PolicyError(f"{msg} has a floor", hint=hint)
    return name


def accepts(recoding: str, column: EncodedColumn) -> bool:
    """Whether a recoding can publish values of this structure and kind, as the rule asks."""
    if recoding == DATE_PART and not column.kind.is_moment:
        return False
    if recoding == GLOBAL and column.taxonomy is not None and column.kind.is_ordered:
        return False  # published as a range, and a node is none
    if recoding == CENTER and (column.rule.top, column.rule.bottom) != (None, None):
        return False  # an open cell has none
    if column.rule.snap is not None and recoding not in SNAPPED:
        return False
    return column.structure in RECODINGS[recoding].accepts


def published_values(encoded: EncodedTable, assignment: Assignment) -> GroupValues:
    """Return what readers see of every group, by the recodings of the columns."""
    columns = tuple(
        RECODINGS[recoding_of(column)].publish(column, assignment) for column in encoded.quasi
    )
    return GroupValues(columns, assignment.n_groups)


def losses_by_recoding(
    encoded: EncodedTable, assignment: Assignment
) -> dict[str, dict[str, float]]:
    """Return what each column would lose by every recoding that can publish it, least first.

    In the classes of an assignment, mean over its rows, a suppressed one losing everything; of
    many classes, those of the lowest numbers are weighed.
    """
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
    """Return what a column loses by each recoding that can publish it, least first."""
    shown, found = assignment.group >= 0, []
    size = np.bincount(assignment.group[shown], minlength=assignment.n_groups)
    for name, recoding in RECODINGS.items():
        if name == PREFIX != column.rule.recoding:  # another tree
            continue
        if accepts(name, column) and (not column.has_floor or name in OF_CELLS):
            published = recoding.publish(column, assignment)
            found.append((name, float(np.average(published.loss[published.index], weights=size))))
    return sorted(found, key=lambda one: round(one[1], 12))


def _unknown(what: str, name: str, choices: Collection[str]) -> PolicyError:
    return PolicyError(
        f"there is no {what} {name!r}{did_you_mean(name, choices)}",
        hint=f"choose one of {', '.join(choices)}",
    )


def certify(
    published: Publication, policy: Policy, population: Population | None, *, budget: int
) -> None:
    """Raise unless the published classes meet every model and the budget was kept."""
    table = published.table
    rows = np.flatnonzero(published.classes >= 0)
    if published.n_suppressed > budget or not len(rows):
        raise _defect(policy)
    require_kept(table, published.classes)
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
    if (spec := unlinked(published, policy)) is not None:
        raise _unmet(spec, policy)
    counting = population_models(policy)
    if counting and (population is None or failing(published, counting, population)[0].any()):
        raise _defect(policy)


def _unmet(spec: ModelSpec, policy: Policy) -> Unsatisfiable:
    msg = f"{title(spec)} is not met by groups of {policy.algorithm!r}"
    return Unsatisfiable(msg, hint="ask for less, or choose another algorithm")


def _defect(policy: Policy) -> DbanonError:
    msg = f"algorithm {policy.algorithm!r} made classes that do not meet the policy"
    return DbanonError(msg, hint="--algorithm mondrian; this is a defect of dbanon")
