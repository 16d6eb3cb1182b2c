"""The search for groups of rows, some of which may have to be grouped apart."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.adjusting.feasible import crowding, rows_in_reach
from dbanon.anonymization.adjusting.population_merging import cover_or_coarsen, require_possible
from dbanon.anonymization.adjusting.repair import finish
from dbanon.anonymization.algorithms.candidates import assign_in_blocks, least
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import listens, timed
from dbanon.anonymization.loss.metrics import information_loss, report
from dbanon.anonymization.outcome import certify, publish, published_values, requirement_of
from dbanon.anonymization.registry import (
    ALGORITHMS,
    algorithm_named,
    make_algorithm,
    recoding_of,
)
from dbanon.anonymization.threads import GivenUp, aside
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import DbanonError, PolicyError, Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from dbanon.anonymization.auto.space import Loss
    from dbanon.anonymization.encoding.population import Population
    from dbanon.anonymization.interfaces import Algorithm, Requirement
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.progress import Stages


def search_rows(
    encoded: EncodedTable,
    policy: Policy,
    *,
    seed: int,
    stages: Stages,
    population: Population | None = None,
) -> Assignment:
    """Group rows, each of which is a unit; what is returned is not certified yet.

    Raises PolicyError for what the policy has wrong, Unsatisfiable when no partition of these rows
    meets it, KeyboardInterrupt when ``stages`` is stopped before there is a partition.
    """
    requirement = requirement_of(encoded, policy)
    _require_apart(encoded, policy)
    for column in encoded.quasi:
        recoding_of(column)
    require_possible(encoded, policy, population, publish=partial(published_values, encoded))
    with stages("cluster"):
        from dbanon.kernels.compile import on_compile

        with on_compile(lambda: stages.note("compiling kernels (once)")) as compiled:
            task = partial(_searched, encoded, policy, requirement, population, seed=seed)
            assignment = _unless_stopped(task, policy, stages)
    if compiled.seconds:
        stages.seconds["cluster"] -= compiled.seconds
        stages.seconds["compile"] = stages.seconds.get("compile", 0.0) + compiled.seconds
    return assignment


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
    if encoded.kept:
        return _group_apart(encoded, policy, requirement, seed=seed, stages=stages)
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
        regroup=lambda k: grouped(replace(requirement, k=k), levels),
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
        requirement = replace(requirement, max_suppressed=left / len(rows))
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
    return Assignment.of_parts(encoded.n_rows, [(rows, assignment)])


def _price(
    encoded: EncodedTable, policy: Policy, assignment: Assignment, *, budget: int, loss: Loss
) -> tuple[bool, float]:
    """Return whether groups fail the policy as they are published, and what is lost then."""
    published = publish(encoded, policy, assignment)
    lost = information_loss(published) if loss == "il" else report(published, {}).asked
    try:
        certify(published, policy, None, budget=budget)
    except DbanonError:
        return True, lost
    return False, lost


def _require_apart(table: EncodedTable, policy: Policy) -> None:
    """Raise PolicyError for a model by which rows cannot be grouped apart.

    It compares each class with all rows, or counts others that it may stand for.
    """
    if not table.kept:
        return
    for spec in policy.models:
        model = MODELS.get(spec.name)
        if model is not None and (model.of_whole or model.scope is Scope.POPULATION):
            name = quote_identifier(table.kept[0].name)
            msg = f"{title(spec)} looks beyond a class, and the rows of each value of {name} are"
            raise PolicyError(f"{msg} grouped apart", hint="leave keep or the model out")


def _group_apart(
    table: EncodedTable, policy: Policy, requirement: Requirement, *, seed: int, stages: Stages
) -> Assignment:
    """Group the rows of each combination of kept values apart, within the policy's budget.

    Rows that cannot meet the policy are left out together; the others share what is left of the
    budget. Raises Unsatisfiable where it does not suffice.
    """
    possible, lost = [], 0
    for rows in strata(table):
        if is_possible(table.take(rows), policy):
            possible.append(rows)
        else:
            lost += len(rows)
    left = requirement.budget(table.n_rows) - lost
    if left < 0 or not possible:
        raise _too_few(table, lost)
    allowed = replace(policy, max_suppressed=left / (table.n_rows - lost))
    parts = []
    for rows in possible:
        part = table.take(rows)
        own = timed(allowed, share=part.n_rows / table.n_rows)
        algorithm = make_algorithm(own, stages=stages)
        found = _grouped(
            part, requirement_of(part, own), algorithm, policy=own, seed=seed, stages=stages
        )
        parts.append((rows, found))
    return Assignment.of_parts(table.n_rows, parts)


def strata(table: EncodedTable) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each combination of kept values, in the order of these; all without any."""
    if not table.kept:
        yield np.arange(table.n_rows)
        return
    codes = np.column_stack([column.codes for column in table.kept])
    of_row = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(of_row, kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(of_row))[:-1])


def is_possible(part: EncodedTable, policy: Policy) -> bool:
    """Whether some rows as one class meet the policy, none of them left out."""
    try:
        rows_in_reach(part, replace(requirement_of(part, policy), max_suppressed=0.0))
    except Unsatisfiable:
        return False
    return True


def _too_few(table: EncodedTable, lost: int) -> Unsatisfiable:
    names = ", ".join(quote_identifier(column.name) for column in table.kept)
    msg = f"{lost:,} of {table.n_rows:,} rows cannot keep their values of {names}"
    return Unsatisfiable(
        f"{msg}: those that share them do not meet the policy",
        hint="raise --max-suppressed, or leave keep out of the policy",
    )
